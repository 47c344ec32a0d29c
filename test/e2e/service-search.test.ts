import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { EventPage } from "../../src/operations/events/event-list.ts";
import type { KeyPage } from "../../src/operations/keys/key-list.ts";
import { freePort } from "../servers/free-port.ts";
import { assertWithin } from "../servers/pace.ts";
import { until } from "../servers/until.ts";
import { type DeadLetterStage, deadLetterStage, deliveredBy, untilDead } from "./dead-letter-stage.ts";
import { type Ask, apiClient, type OpenApiDocument } from "./openapi-client.ts";
import type { ServiceProcess } from "./service-process.ts";
import { serverOfFile } from "./service-stage.ts";

const server = serverOfFile();
const FLAG = "orders.outbox";

const NONSENSE = [
  "'; drop table orders.outbox; --",
  "' or '1'='1",
  "<script>alert(1)</script>",
  "a\0b",
  "\\",
  '"',
  "%_%",
  "$1 $$ {{x}}",
  "\ud800",
  "\u202e‮",
  "x".repeat(9_000),
  "-1",
  "9".repeat(30),
];
const FIELDS = [
  "",
  "id:",
  "key:",
  "corr:",
  "type:",
  "state:",
  "source:",
  "since:",
  "until:",
  "age:>",
  "text:",
  "error:",
  "header:",
  "header:x=",
  "payload.order:",
  "group:",
];

/** Whoever asks too much at a time is asked to wait. */
async function patiently(url: string): Promise<{ status: number; text: string }> {
  let answer = { status: 429, text: "" };
  await until("it is our turn", async () => {
    const response = await fetch(url);
    answer = { status: response.status, text: await response.text() };
    return answer.status !== 429;
  });
  return answer;
}

/** What has arrived of a stream, as text, until it is closed. */
async function openStream(url: string): Promise<{ status: number; text: () => string; close: () => void }> {
  const gone = new AbortController();
  const response = await fetch(url, { signal: gone.signal });
  let text = "";
  const reading = (async () => {
    for await (const piece of response.body ?? []) text += Buffer.from(piece as Uint8Array).toString();
  })().catch(() => {});
  return {
    status: response.status,
    text: () => text,
    close: () => {
      gone.abort();
      void reading;
    },
  };
}

interface Api {
  readonly stage: DeadLetterStage;
  readonly running: ServiceProcess;
  readonly address: string;
  readonly ask: Ask;
}

async function startApi(stage: DeadLetterStage): Promise<Api> {
  const port = String(await freePort());
  const running = await stage.run({ PORT: port });
  const address = `http://127.0.0.1:${port}`;
  await until("it answers", async () => (await running.get("/livez").catch(() => null))?.status === 200);
  const ask = apiClient((await running.get("/openapi.json")).json() as unknown as OpenApiDocument, address);
  return { stage, running, address, ask };
}

describe("searching over HTTP", () => {
  test("F3 G4 one filter language finds events, dead letters and keys, takes any nonsense, and a tail ends with its reader", async () => {
    await using stage = await deadLetterStage(server());
    const api = await startApi(stage);
    await using _ = api.running;
    await findByWords(api);
    await takeNonsense(api);
    await followAndLeave(api);
    await server().stop("immediate");
    const startedMs = performance.now();
    const down = await fetch(`${api.address}/api/v1/events?q=key:a`);
    assert.deepEqual([down.status, /DATABASE_UNREACHABLE/.test(await down.text())], [503, true]);
    await assertWithin(performance.now() - startedMs, 5_000, "asking while the database is down");
  });
});

async function findByWords({ address, ask, running, stage: it }: Api): Promise<void> {
  const { a1, a2, b1 } = await it.write(FLAG, "a1! a2 b1");
  await untilDead(it, 1);
  await until("the other is delivered", () => deliveredBy(running) === "b1");
  const found = async (q: string) =>
    (await ask<EventPage>("GET", "/api/v1/events", { query: { q } })).body.events.map(({ id }) => id);

  assert.deepEqual(await found("state:dead key:a"), [a1]);
  assert.deepEqual(await found("state:parked"), [a2]);
  assert.deepEqual(await found(b1!), [b1]);
  assert.deepEqual(await found("a type:order.* age:<1h source:orders.outbox"), [a2, a1]);
  assert.deepEqual(await found('text:"b1"'), [b1]);
  const few = (await ask<EventPage & { also: string }>("GET", "/api/v1/events", { query: { q: "b1 type:order.*" } }))
    .body;
  assert.deepEqual([few.events, few.also], [[], "type:order.* text:b1"]);
  const { deadLetters } = (
    await ask<{ deadLetters: { id: string; group: string }[] }>("GET", "/api/v1/dead-letters", { query: { q: "a" } })
  ).body;
  assert.deepEqual(
    deadLetters.map(({ id }) => id),
    [a1],
  );
  const groups = await ask<{ groups: { histogram: number[] }[] }>("GET", "/api/v1/dead-letters/groups", {
    query: { q: `group:${deadLetters[0]?.group}` },
  });
  assert.equal(
    groups.body.groups[0]?.histogram.reduce((sum, it) => sum + it, 0),
    1,
  );
  const { keys } = (await ask<KeyPage>("GET", "/api/v1/keys", { query: { kind: "parked" } })).body;
  assert.deepEqual(
    keys.map(({ head, key, waiting }) => [key, head?.id, waiting?.count]),
    [["a", a1, 1]],
  );
  const wrong = await fetch(`${address}/api/v1/events?${new URLSearchParams({ q: "key:a colour:red" })}`);
  assert.deepEqual([wrong.status, /colour:red.* at character 7/.test(await wrong.text())], [400, true]);

  const listed = await it.command("events", "list", "state:dead", "key:a", "-o", "json");
  assert.equal(JSON.parse(listed.stdout).events[0].id, a1);
  const misspelt = await it.command("events", "list", "stat:dead");
  assert.deepEqual([misspelt.code, /did you mean state:/.test(misspelt.stderr)], [2, true]);
  assert.match(
    (await it.command("keys", "list", "--kind", "parked")).stdout,
    /^KEY .*\na +parked +orders\.outbox->stdout +1 /,
  );
}

async function takeNonsense({ address }: Api): Promise<void> {
  const statuses = new Map<number, number>();
  const questions = NONSENSE.flatMap((value, index) => [
    ...FIELDS.map((field) => ["events", { q: field + value }] as const),
    ["dead-letters", { q: (FIELDS[index % FIELDS.length] ?? "") + value }] as const,
    ["dead-letters/groups", { q: (FIELDS[(index + 5) % FIELDS.length] ?? "") + value }] as const,
    ...["pipeline", "cursor", "kind"].map((name) => ["keys", { [name]: value }] as const),
  ]);
  for (const [path, query] of questions) {
    const { status, text } = await patiently(`${address}/api/v1/${path}?${new URLSearchParams(query)}`);
    // 404: no group of dead letters begins like that.
    assert.ok([200, 400, 404].includes(status), `${path} ${JSON.stringify(query).slice(0, 60)}: ${status} ${text}`);
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
  }
  assert.ok((statuses.get(200) ?? 0) > 50 && (statuses.get(400) ?? 0) > 50, JSON.stringify([...statuses]));
}

async function followAndLeave({ address, ask, stage: it }: Api): Promise<void> {
  const tail = await openStream(`${address}/api/v1/events/tail?q=key:e`);
  assert.equal(tail.status, 200);
  // Paused, so that an event is seen before its delivery however slowly the tail looks.
  const pipeline = { params: { name: `${FLAG}->stdout` } };
  await ask("POST", "/api/v1/pipelines/{name}/pause", { ...pipeline, body: {} });
  let written: Record<string, string> = {};
  await until("it tells of what is written", async () => {
    written = await it.write(FLAG, "e1 f1");
    return /event: new\ndata: .*"state":"pending".*"waitsFor":"paused"/.test(tail.text());
  });
  assert.ok(!tail.text().includes('"key":"f"') && Object.keys(written).length === 2);
  await ask("POST", "/api/v1/pipelines/{name}/resume", { ...pipeline, body: {} });
  await until("and of its delivery", () => /event: changed\ndata: .*"state":"delivered"/.test(tail.text()));
  const others = await Promise.all(Array.from({ length: 19 }, () => openStream(`${address}/api/v1/events/tail`)));
  assert.deepEqual([...new Set(others.map(({ status }) => status))], [200]);
  const refused = await openStream(`${address}/api/v1/events/tail`);
  assert.equal(refused.status, 429, "twenty at once");
  assert.equal((await openStream(`${address}/api/v1/events/tail?q=colour:red`)).status, 400);
  for (const it of [tail, ...others]) it.close();
  await until("there is room again", async () => {
    const again = await openStream(`${address}/api/v1/events/tail`);
    again.close();
    return again.status === 200;
  });
}
