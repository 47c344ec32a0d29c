import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import type { ShownAttempt } from "../../src/operations/events/attempts.ts";
import type { ShownEvent } from "../../src/operations/events/event-show.ts";
import type { KnownPipeline } from "../../src/operations/pipelines/pipelines.ts";
import { freePort } from "../servers/free-port.ts";
import { until } from "../servers/until.ts";
import { ORDERS } from "./outbox-tables.ts";
import { runCommand, type ServiceProcess, startService } from "./service-process.ts";
import { serverOfFile, stagesOn } from "./service-stage.ts";
import type { Stage } from "./stage.ts";

const server = serverOfFile();
const stage = stagesOn(server, "recorder", [ORDERS]);
const PIPELINE = "orders.outbox->http";
const SECRET = "token-for-nobody";

/** Answers 500 as often as the event's type says: `fails.2`. */
const receiver: Server = createServer((request: IncomingMessage, response) => {
  const id = String(request.headers["event-id"]);
  const failures = Number(/fails\.(\d+)/.exec(String(request.headers["event-type"]))?.[1] ?? 0);
  const times = (arrivals.get(id) ?? 0) + 1;
  arrivals.set(id, times);
  request.resume().on("end", () => response.writeHead(times <= failures ? 500 : 204).end());
});
const arrivals = new Map<string, number>();

before(async () => {
  await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
});
after(() => {
  receiver.closeAllConnections();
  receiver.close();
});

const envOf = (it: Stage, port: number, more: Readonly<Record<string, string>> = {}) => ({
  DATABASE_URL: it.relayUrl,
  OUTBOX_SCHEMAS: "orders",
  OUTBOX_DESTINATION: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`,
  HTTP_HEADERS: `authorization=${SECRET}`,
  RETRY_INITIAL_DELAY_MS: "50",
  POLL_INTERVAL_MS: "50",
  PORT: String(port),
  NO_COLOR: "1",
  ...more,
});

async function started(it: Stage, more: Readonly<Record<string, string>> = {}) {
  const port = await freePort();
  const running = startService(["run"], envOf(it, port, more));
  await until("it answers", async () => (await running.get("/livez").catch(() => null))?.status === 200);
  return Object.assign(running, { address: `http://127.0.0.1:${port}` });
}

async function insert({ sql }: Stage, type: string, count = 1): Promise<string[]> {
  const rows = await sql<{ id: string }>(
    `insert into orders.outbox (aggregate_id, event_type, payload, headers)
     select 'key-' || n, $1, '{"amount": 9007199254740993, "card": {"number": "4111"}}', '{"tenant": "t-7", "password": "hunter2"}'
     from generate_series(1, $2::int) n returning id`,
    [type, count],
  );
  return rows.map(({ id }) => id);
}

const shown = async (running: ServiceProcess, id: string) => {
  const { body, status } = await running.get(`/api/v1/events/${id}`);
  assert.equal(status, 200, body);
  return JSON.parse(body) as ShownEvent;
};

const untilRecorded = (running: ServiceProcess, id: string, attempts: number, state: ShownEvent["state"]) =>
  until(`${attempts} attempts are recorded, and it is ${state}`, async () => {
    const { body, status } = await running.get(`/api/v1/events/${id}`);
    // Before its first look the relay does not know the table.
    const event = status === 404 ? null : (JSON.parse(body) as ShownEvent);
    return event?.delivery.length === attempts && event.state === state ? event : null;
  });

/** written, claimed, sent and answered, each no earlier than the one before. */
function requireInOrder({ at, claimedAt, durationMs, sentAt, writtenAt }: ShownAttempt): void {
  const [written, claimed, sent, answered] = [writtenAt, claimedAt, sentAt, at].map((time) => Date.parse(time ?? ""));
  assert.ok(
    written! <= claimed! + 1 && claimed! <= sent! + 1 && sent! <= answered!,
    JSON.stringify({ written, claimed, sent }),
  );
  assert.ok(durationMs !== null && durationMs > 0 && durationMs < 60_000);
}

/** A relay looks for wishes of people this often. */
const WISHES_MS = 3_000;

describe("recorded attempts and limits", { concurrency: 3 }, () => {
  test("F3 G4 A20 what failed twice and was then delivered has three attempts, with errors, times in order and headers as sent", async () => {
    await using it = await stage();
    await using running = await started(it, { REDACT: "password,card.*", RELAY_ID: "relay-1" });
    const [id] = await insert(it, "fails.2");
    const event = await untilRecorded(running, id!, 3, "delivered");
    assert.deepEqual(
      event.delivery.map(({ attempt, errorType, instance, outcome, pipeline }) => [
        attempt,
        outcome,
        errorType,
        instance,
        pipeline,
      ]),
      [
        [1, "failed", "HTTP_500", "relay-1", PIPELINE],
        [2, "failed", "HTTP_500", "relay-1", PIPELINE],
        [3, "delivered", null, "relay-1", PIPELINE],
      ],
    );
    for (const attempt of event.delivery) requireInOrder(attempt);
    assert.match(event.delivery[0]?.reason ?? "", /answered 500/);
    assert.deepEqual([event.delivery[2]?.headers?.tenant, event.delivery[2]?.headers?.password], ["t-7", "[redacted]"]);
    assert.deepEqual([event.state, event.isGone, event.letterId], ["delivered", false, null]);
    assert.deepEqual([event.pipelines, event.headers.password], [[PIPELINE], "[redacted]"]);
    assert.equal(event.payload?.text, '{"amount": 9007199254740993, "card": {"number": "[redacted]"}}');
    assert.ok(!JSON.stringify(event).includes(SECRET));
    const { stdout } = await runCommand(["events", "show", id!], envOf(it, 1, { REDACT: "password,card.*" }));
    assert.match(stdout, /attempt 1 +\S+ {2}failed {2}to /);
    assert.match(stdout, /written \S+ {2}claimed \+.* {2}sent \+.* {2}answered \+/);
    assert.doesNotMatch(stdout, /hunter2|4111/);
    const [seen] = await it.sql<{ headers: string }>("select headers::text from orders.outbox");
    assert.match(seen?.headers ?? "", /hunter2/);
  });

  test("F3 A20 a payload is downloaded byte for byte by those who may, the audit knows by whom, and others see none", async () => {
    await using it = await stage();
    const tokens = { ann: "token-of-ann-with-payloads", eve: "token-of-eve-without-them" };
    const API_TOKENS = `ann:operator+payloads:${tokens.ann},eve:viewer:${tokens.eve}`;
    await using running = await started(it, { API_TOKENS });
    const [id] = await insert(it, "placed");
    const ask = (path: string, who: keyof typeof tokens) =>
      fetch(`${running.address}/api/v1/events/${path}`, { headers: { authorization: `Bearer ${tokens[who]}` } });
    await until("it is delivered", async () => {
      const response = await ask(id!, "eve");
      return response.ok && ((await response.json()) as ShownEvent).state === "delivered";
    });
    const download = await ask(`${id}/payload`, "ann");
    assert.equal(await download.text(), '{"amount": 9007199254740993, "card": {"number": "4111"}}');
    assert.equal(download.headers.get("content-type"), "application/octet-stream");
    assert.equal(download.headers.get("content-disposition"), `attachment; filename="${id}.bin"`);
    const { audit, payload } = (await (await ask(id!, "eve")).json()) as ShownEvent;
    assert.deepEqual(
      [audit.map(({ action, actor, via }) => [action, actor, via]), payload],
      [[["payload-read", "ann", "api"]], null],
    );
    assert.equal((await ask(`${id}/payload`, "eve")).status, 403);
    assert.equal((await ask("no-such-event/payload", "ann")).status, 404);
  });

  test("F3 D5 an event whose row is gone is still known by its dead letter and by its attempts, until they are pruned", async () => {
    await using it = await stage();
    await using running = await started(it, { RECORD_RETENTION: "20s", MAX_RETRIES: "2" });
    const [id] = await insert(it, "placed");
    const [bad] = await insert(it, "fails.99");
    const there = await untilRecorded(running, id!, 1, "delivered");
    assert.deepEqual([there.state, there.delivery[0]?.attempt], ["delivered", 1]);
    requireInOrder(there.delivery[0]!);
    const dead = await untilRecorded(running, bad!, 2, "dead");
    assert.deepEqual(
      dead.delivery.map(({ attempt, outcome }) => `${attempt} ${outcome}`),
      ["1 failed", "2 dead"],
    );
    assert.match(dead.letterId ?? "", /^[0-9a-f-]{36}$/);
    await it.sql("delete from orders.outbox");
    const gone = await shown(running, id!);
    assert.deepEqual([gone.state, gone.isGone, gone.payload, gone.type], ["delivered", true, null, "placed"]);
    assert.deepEqual([gone.headers.tenant, gone.createdAt], ["t-7", there.createdAt]);
    const letter = await shown(running, bad!);
    assert.deepEqual([letter.state, letter.isGone, letter.letterId], ["dead", true, dead.letterId]);
    assert.match(letter.payload?.text ?? "", /9007199254740993/);
    await it.sql("update outbox_relay.attempts set at = at - interval '1 minute'");
    await until("it is pruned", async () => (await running.get(`/api/v1/events/${id}`)).status === 404);
    const remembered = await shown(running, bad!);
    assert.deepEqual(
      remembered.delivery.map(({ attempt, sentAt }) => [attempt, sentAt]),
      [
        [1, null],
        [2, null],
      ],
    );
  });

  test("F3 an event that no table shows, as in a write-ahead log, is known by its attempts and its hold", async () => {
    await using it = await stage();
    await insert(it, "placed");
    assert.equal((await runCommand(["run", "--once"], envOf(it, 1))).code, 0);
    await it.sql(`insert into outbox_relay.attempts (at, pipeline, event_id, event_type, outcome, attempt, reason)
        values (now(), '${PIPELINE}', 'unseen', 'placed', 'failed', 3, 'not yet');
      insert into outbox_relay.holds (pipeline, lane, event_id, event_key, state, parks, attempts, next_at, reason, errors)
        values ('${PIPELINE}', 0, 'unseen', 'k', 'retrying', true, 3, now() + interval '1 hour', 'not yet', '[]')`);
    const { stdout } = await runCommand(["events", "show", "unseen", "-o", "json"], envOf(it, 1));
    const { attempts, isGone, nextAttemptAt, reason, source, state } = JSON.parse(stdout) as ShownEvent;
    assert.deepEqual([state, isGone, attempts, reason, source], ["retrying", true, 3, "not yet", "orders.outbox"]);
    assert.ok(Date.parse(nextAttemptAt ?? "") > Date.now());
  });

  test("F3 a drain is sampled, and the metrics tell how many were recorded", async () => {
    await using it = await stage();
    await using running = await started(it, { RECORD_DELIVERED: "5" });
    await insert(it, "placed", 500);
    await until("all are delivered", async () => (await waiting(it)) === 0);
    const { stored, dropped } = await metricsOf(running, (figures) => figures.stored > 0);
    assert.ok(stored < 250, `${stored} of 500`);
    assert.equal(dropped, 0);
  });

  test("F4 G4 a limit holds within three seconds, is told with its author and noted in the audit, and ends", async () => {
    await using it = await stage();
    await using running = await started(it);
    await insert(it, "first");
    await until("it runs", async () => (await waiting(it)) === 0);
    const limit = async (perSecond: number | null) => {
      const body = JSON.stringify({ perSecond, reason: "gently" });
      const headers = { "content-type": "application/json" };
      return await fetch(`${running.address}/api/v1/pipelines/orders/limit`, { method: "POST", headers, body });
    };
    assert.equal((await limit(0)).status, 400);
    assert.deepEqual(await (await limit(10)).json(), { pipelines: [{ pipeline: PIPELINE, hasChanged: true }] });
    const limitedMs = performance.now();
    const { pipelines } = (await running.get("/api/v1/pipelines")).json() as { pipelines: KnownPipeline[] };
    assert.deepEqual(pipelines[0]?.limit, { perSecond: 10, by: "local", reason: "gently" });
    await until("the relay had its time", () => performance.now() - limitedMs > WISHES_MS + 200);
    const beganMs = performance.now();
    await insert(it, "limited", 20);
    await until("they are delivered", async () => (await waiting(it)) === 0);
    const tookMs = performance.now() - beganMs;
    assert.ok(tookMs > 1_500, `20 events at 10 a second took ${tookMs} ms`);
    await insert(it, "limited", 1_200);
    const ended = await runCommand(["limit", PIPELINE, "off"], envOf(it, 1));
    assert.deepEqual(
      [ended.code, ended.stdout],
      [0, `${PIPELINE}: limit removed; takes effect within three seconds\n`],
    );
    // At ten a second they would take two minutes.
    await until("nothing holds them back", async () => (await waiting(it)) === 0, 100_000);
    const rows = await it.sql("select actor, via, action, target, reason, detail from outbox_relay.audit order by id");
    const about = { action: "limit", target: PIPELINE };
    assert.deepEqual(rows[0], {
      ...about,
      actor: "local",
      via: "api",
      reason: "gently",
      detail: { before: null, perSecond: 10 },
    });
    assert.deepEqual([rows.length, rows[1]?.via, rows[1]?.detail], [2, "cli", { before: 10, perSecond: null }]);
  });
});

async function waiting({ sql }: Stage): Promise<number> {
  const [row] = await sql<{ count: string }>("select count(*) from orders.outbox where published is not true");
  return Number(row?.count);
}

const metricsOf = (running: ServiceProcess, fits: (figures: { stored: number; dropped: number }) => boolean) =>
  until("the metrics tell it", async () => {
    const { body } = await running.get("/metrics");
    const value = (name: string) =>
      Number(new RegExp(`^outbox_relay_attempts_${name}_total (\\S+)`, "m").exec(body)?.[1]);
    const figures = { stored: value("recorded"), dropped: value("dropped") };
    return fits(figures) ? figures : null;
  });

test("F3 F1 a database that goes away for a while costs no delivery, and the recorder goes on", async () => {
  await using it = await stage();
  await using running = await started(it);
  await insert(it, "before", 20);
  await until("they are delivered", async () => (await waiting(it)) === 0);
  await server().restart();
  const ids = await until("the database is back", () => insert(it, "after", 20).catch(() => null));
  await until("nothing is lost", async () => (await waiting(it)) === 0);
  assert.ok(ids.every((id) => (arrivals.get(id) ?? 0) >= 1));
  const last = await until("it is recorded again", async () => {
    const rows = await it.sql("select from outbox_relay.attempts where event_type = 'after'");
    return rows.length >= 20;
  });
  assert.ok(last);
  assert.equal((await running.get("/health")).status, 200);
});
