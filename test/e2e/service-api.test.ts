import assert from "node:assert/strict";
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { describe, test } from "node:test";
import type { ChangeReport } from "../../src/operations/dead-letters/dead-letter-change.ts";
import type { DeadLetterGroup } from "../../src/operations/dead-letters/dead-letter-groups.ts";
import type { ShownDeadLetter } from "../../src/operations/dead-letters/dead-letter-list.ts";
import type { EventPage } from "../../src/operations/events/event-list.ts";
import type { ShownEvent } from "../../src/operations/events/event-show.ts";
import type { Status } from "../../src/operations/pipelines/status.ts";
import type { FrozenPlan } from "../../src/operations/replay/frozen-plan.ts";
import type { ReplayPlan } from "../../src/operations/replay/replay-plan.ts";
import { freePort } from "../servers/free-port.ts";
import { until, untilEqual } from "../servers/until.ts";
import { type DeadLetterStage, deadLetterStage, deliveredBy, untilDead } from "./dead-letter-stage.ts";
import { type Ask, apiClient, type OpenApiDocument, requireValid } from "./openapi-client.ts";
import type { ServiceProcess } from "./service-process.ts";
import { serverOfFile } from "./service-stage.ts";

const server = serverOfFile();

const FLAG = "orders.outbox";
const OPEN = "public.openoutbox_events";
const PIPELINE = "orders.outbox->stdout";

type Letters = { readonly deadLetters: readonly ShownDeadLetter[] };
type Change = { readonly plan: ReplayPlan; readonly report: ChangeReport | null };
type Started = { readonly replay: FrozenPlan; readonly unknown: readonly string[] };

interface Api {
  readonly running: ServiceProcess;
  readonly address: string;
  readonly document: OpenApiDocument;
  readonly ask: Ask;
}

async function startApi(it: DeadLetterStage, env: Readonly<Record<string, string>> = {}): Promise<Api> {
  const port = String(await freePort());
  const running = await it.run({ PORT: port, ...env });
  const address = `http://127.0.0.1:${port}`;
  await until("it answers", async () => (await running.get("/livez").catch(() => null))?.status === 200);
  const document = (await running.get("/openapi.json")).json() as unknown as OpenApiDocument;
  return { running, address, document, ask: apiClient(document, address) };
}

describe("the HTTP API", { concurrency: 3 }, () => {
  test("G4 A21 A18: everything that is documented answers as documented, on a service at work", async () => {
    await using it = await deadLetterStage(server());
    const { running, document, ask } = await startApi(it);
    await using _ = running;
    requireValid(document);
    for (const path of ["/health", "/healthz", "/livez", "/readyz", "/ready", "/metrics", "/openapi.json", "/"]) {
      assert.equal((await ask("GET", path)).status, 200, path);
    }
    const { a1, a2 } = await it.write(FLAG, "a1! a2 b1");
    await it.write(OPEN, "c1 c2");
    await untilDead(it, 1);
    await until("the others are delivered", () => deliveredBy(running).split(" ").length === 3);

    const status = (await ask<Status>("GET", "/api/v1/status")).body;
    assert.equal(status.pipelines.find(({ pipeline }) => pipeline === PIPELINE)?.deadLetters, 1);
    await until("all have their lanes", async () => {
      const { pipelines } = (await ask<Status>("GET", "/api/v1/pipelines")).body;
      const { lanes } = (await ask<{ lanes: object[] }>("GET", "/api/v1/lanes")).body;
      return pipelines.length === 4 && lanes.length === 16;
    });
    assert.deepEqual((await ask("GET", "/api/v1/sources")).body.broken, []);
    const first = (await ask<EventPage>("GET", "/api/v1/events", { query: { limit: "3" } })).body;
    const cursor = first.cursor ?? assert.fail("there is more");
    const second = (await ask<EventPage>("GET", "/api/v1/events", { query: { limit: "3", cursor } })).body;
    assert.deepEqual([first.events.length, second.events.length, second.cursor], [3, 2, null]);
    const parked = (await ask<EventPage>("GET", "/api/v1/events", { query: { state: "parked", key: "a" } })).body;
    assert.deepEqual([parked.events.length, parked.events[0]?.parkedBehind], [1, a1]);
    const shown = (await ask<ShownEvent>("GET", "/api/v1/events/{id}", { params: { id: a1! } })).body;
    assert.match(shown.payload?.text ?? "", /9007199254740993/);
    assert.equal((await ask("GET", "/api/v1/events/{id}", { params: { id: "no/such id" } })).status, 404);

    const letters = (await ask<Letters>("GET", "/api/v1/dead-letters", { query: { source: FLAG } })).body.deadLetters;
    assert.deepEqual([letters.length, letters[0]?.id], [1, a1]);
    const { groups } = (await ask<{ groups: DeadLetterGroup[] }>("GET", "/api/v1/dead-letters/groups")).body;
    assert.deepEqual([groups.length, groups[0]?.count], [1, 1]);
    const copies = (await ask<Letters>("GET", "/api/v1/dead-letters/{id}", { params: { id: a1! } })).body.deadLetters;
    assert.equal(copies[0]?.errors.length, 1);
    assert.equal((await ask("GET", "/api/v1/dead-letters/{id}", { params: { id: a2! } })).status, 404);
  });

  test("G4 D5 F2: dead letters are replayed and discarded over HTTP, in order, and nothing by an oversight", async () => {
    await using it = await deadLetterStage(server());
    const { running, ask } = await startApi(it);
    await using _ = running;
    const replay = (body: object) => ask<Change & Started>("POST", "/api/v1/dead-letters/replay", { body });
    const discard = (body: object) => ask<Change & Started>("POST", "/api/v1/dead-letters/discard", { body });
    const { a1, c1, d1 } = await it.write(FLAG, "a1! a2 b1! b2 c1! d1!");
    await untilDead(it, 4);
    assert.equal((await replay({})).status, 400, "nothing says which");
    assert.equal((await replay({ all: true, typ: "order.*" })).status, 400, "a name that nobody knows");
    assert.equal((await discard({ ids: [a1] })).status, 400, "without a reason");
    assert.equal((await replay({ ids: ["nobody"] })).status, 404);
    const dry = (await replay({ all: true, dryRun: true })).body;
    assert.deepEqual([dry.plan.count, dry.plan.keys, dry.plan.parking, dry.report], [4, 4, 4, null]);
    await untilDead(it, 4);
    for (const id of [a1!, c1!, d1!]) await it.mend(FLAG, id);
    const replayed = await replay({ ids: [a1], by: "anna" });
    assert.deepEqual([replayed.status, replayed.body.report?.done], [200, 1], "one event goes at once");
    const several = await replay({ ids: [c1, d1, "nobody"], by: "anna" });
    assert.deepEqual(
      [several.status, several.body.replay.count, several.body.replay.state, several.body.unknown],
      [202, 2, "running", ["nobody"]],
      "more than one goes by a plan",
    );
    const discarded = await discard({ key: "b", reason: "a test" });
    assert.deepEqual([discarded.status, discarded.body.replay.state], [202, "running"], "a filter goes by a plan");
    await until("in order, without b1", () => deliveredBy(running).split(" ").sort().join(" ") === "a1 a2 b2 c1 d1");
    assert.ok(deliveredBy(running).indexOf("a1") < deliveredBy(running).indexOf("a2"));
    const told = async () => {
      const { body } = await ask<Letters>("GET", "/api/v1/dead-letters", { query: { resolved: "true" } });
      return body.deadLetters.map(({ resolution }) => `${resolution?.how} by ${resolution?.by}`).sort();
    };
    await untilEqual("all tell who did it", told, ["discarded by api", ...Array<string>(3).fill("replayed by anna")]);
  });

  test("G4: a pipeline is paused and resumed over HTTP", async () => {
    await using it = await deadLetterStage(server());
    const { running, ask } = await startApi(it);
    await using _ = running;
    await running.becomes("healthy");
    const change = (verb: string, name: string) =>
      ask("POST", `/api/v1/pipelines/{name}/${verb}`, { params: { name }, body: {} });
    assert.equal((await change("pause", "nobody")).status, 404);
    assert.deepEqual((await change("pause", PIPELINE)).body, { pipelines: [{ pipeline: PIPELINE, hasChanged: true }] });
    await running.logged("that it pauses", ({ event }) => event === "PipelinePaused");
    await it.write(FLAG, "a1");
    await it.write(OPEN, "c1");
    await until("only the other one delivers", () => deliveredBy(running) === "c1");
    assert.equal((await change("resume", FLAG)).status, 200, "by the name of its source");
    await until("it goes on", () => deliveredBy(running) === "c1 a1");
  });

  test("G4: beyond this machine the API is off, or needs the token; health and metrics never; the log says which", async () => {
    await using it = await deadLetterStage(server());
    const off = await startApi(it, { HOST: "0.0.0.0" });
    await using _off = off.running;
    await off.running.logged("that it is off", ({ message }) => /API and console are off/.test(String(message)));
    const refused = await off.ask<{ code: string; fix: string }>("GET", "/api/v1/status");
    assert.deepEqual([refused.status, refused.body.code], [403, "API_OFF"]);
    assert.match(refused.body.fix, /Set ADMIN_TOKEN/);
    const page = await off.running.get("/");
    assert.deepEqual([page.status, /Set ADMIN_TOKEN/.test(page.body)], [403, true], "so is the console");
    const guarded = await startApi(it, { HOST: "0.0.0.0", ADMIN_TOKEN: "canary-7f3a" });
    await using _guarded = guarded.running;
    await guarded.running.logged("that it needs a token", ({ message }) =>
      /need a token \(admin\)/.test(String(message)),
    );
    assert.equal((await guarded.ask("GET", "/api/v1/status")).status, 401);
    assert.equal((await guarded.ask("GET", "/api/v1/status", { token: "canary-7f3b" })).status, 401);
    const token = "canary-7f3a";
    await until("it is let in", async () => (await guarded.ask("GET", "/api/v1/pipelines", { token })).status === 200);
    for (const { running } of [off, guarded]) {
      for (const path of ["/health", "/livez", "/readyz", "/metrics"]) {
        assert.notEqual((await running.get(path)).status, 401, path);
        assert.notEqual((await running.get(path)).status, 403, path);
      }
    }
    assert.doesNotMatch(guarded.running.stdout() + guarded.running.stderr(), /canary/);
  });

  test("G4: on this machine a page of another site neither reads under a made-up name nor changes anything", async () => {
    await using it = await deadLetterStage(server());
    const { running, address } = await startApi(it);
    await using _ = running;
    await running.logged("that it is open", ({ message }) =>
      /open only to this user on this machine/.test(String(message)),
    );
    const statusOf = async (method: string, path: string, headers: Record<string, string>) => {
      const asking = request(`${address}${path}`, {
        method,
        headers: { "content-type": "application/json", ...headers },
      });
      asking.end(method === "POST" ? '{"all": true}' : undefined);
      const [response] = (await once(asking, "response")) as [IncomingMessage];
      response.resume();
      return response.statusCode;
    };
    await running.becomes("healthy");
    const replay = "/api/v1/dead-letters/replay";
    assert.equal(await statusOf("GET", "/api/v1/pipelines", {}), 200);
    assert.equal(await statusOf("GET", "/api/v1/pipelines", { host: "evil.example" }), 403);
    assert.equal(await statusOf("GET", "/health", { host: "evil.example" }), 200);
    assert.equal(await statusOf("POST", replay, {}), 404, "there is nothing to replay");
    assert.equal(await statusOf("POST", replay, { origin: "https://evil.example" }), 403);
    assert.equal(await statusOf("POST", replay, { "sec-fetch-site": "cross-site" }), 403);
    assert.equal(await statusOf("POST", replay, { "content-type": "text/plain" }), 415);
  });
});
