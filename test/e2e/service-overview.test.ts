import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { z } from "zod";
import type { overviewSchema, seriesSchema } from "../../src/http/schemas/overview.ts";
import type { configSchema, findingsSchema, logsSchema } from "../../src/http/schemas/service.ts";
import type { AuditEntry } from "../../src/operations/audit/audit.ts";
import type { TopSnapshot } from "../../src/operations/overview/top-meter.ts";
import type { Status } from "../../src/operations/pipelines/status.ts";
import { freePort } from "../servers/free-port.ts";
import { startTcpProxy } from "../servers/tcp-proxy.ts";
import { until, untilEqual } from "../servers/until.ts";
import { type DeadLetterStage, deadLetterStage, untilDead } from "./dead-letter-stage.ts";
import { publish, withManagedLog } from "./log-stage.ts";
import { type Ask, apiClient, type OpenApiDocument } from "./openapi-client.ts";
import { runCommand, type ServiceProcess, startService } from "./service-process.ts";
import { serverOfFile } from "./service-stage.ts";
import { openStage } from "./stage.ts";

const server = serverOfFile();

const FLAG = "orders.outbox";
const PIPELINE = "orders.outbox->stdout";

type Overview = z.output<typeof overviewSchema>;
type Series = z.output<typeof seriesSchema>;
type Findings = z.output<typeof findingsSchema>;
type Config = z.output<typeof configSchema>;
type Logs = z.output<typeof logsSchema>;

async function clientOf(running: ServiceProcess, port: string): Promise<Ask> {
  await until("it answers", async () => (await running.get("/livez").catch(() => null))?.status === 200);
  const document = (await running.get("/openapi.json")).json() as unknown as OpenApiDocument;
  return apiClient(document, `http://127.0.0.1:${port}`);
}

const overviewOf = async (ask: Ask) => (await ask<Overview>("GET", "/api/v1/overview")).body;
const seriesOf = async (ask: Ask) => (await ask<Series>("GET", "/api/v1/series")).body;

describe("the overview", { concurrency: 3 }, () => {
  test("F3 G4: rates, what waits, destinations, instances and markers of a service at work, live too", async () => {
    await using it = await deadLetterStage(server());
    const port = String(await freePort());
    await using running = await it.run({ PORT: port });
    const ask = await clientOf(running, port);
    await running.becomes("healthy");
    await it.write(FLAG, "a1! a2 b1 c1 d1");
    await untilDead(it, 1);
    const overview = await untilAllIsTold(ask);
    assert.deepEqual([overview.health, overview.problems], ["healthy", []]);
    // An event that is retried parks its key too, and nobody has to do anything about it.
    await it.sql(`insert into outbox_relay.holds (pipeline, lane, event_id, event_key, state, parks, attempts, reason)
      select pipeline, lane, 'retried', 'retried', 'retrying', true, 1, 'busy' from outbox_relay.holds where state = 'dead' limit 1`);
    const { causes } = JSON.parse((await it.command("status", "-o", "json")).stdout) as Pick<Overview, "causes">;
    const parked = causes.filter(({ code }) => code === "keys-parked").map(({ what }) => what);
    assert.deepEqual([parked.length, parked[0]?.startsWith("1 key of ")], [1, true], parked.join());
    await it.sql("delete from outbox_relay.holds where event_id = 'retried'");
    await untilEqual("it has all lanes", async () => (await overviewOf(ask)).instances.map(({ lanes }) => lanes), [16]);
    const [destination] = overview.destinations;
    assert.deepEqual([destination?.destination, destination?.pipelines.length], ["stdout", 4]);
    assert.ok(destination?.p50Ms !== null && destination?.p99Ms !== null);
    assert.match(destination?.lastError?.reason ?? "", /TOPIC_TEMPLATE/);

    const live = liveOverviews(`http://127.0.0.1:${port}/api/v1/live`);
    assert.equal((await live.next()).value?.service, "outbox-relay");
    const change = (verb: string, name: string) =>
      ask("POST", `/api/v1/pipelines/{name}/${verb}`, { params: { name }, body: {} });
    for (const name of destination?.pipelines ?? []) assert.equal((await change("pause", name)).status, 200);
    await until("the stream says that it is paused", async () => {
      const { value } = await live.next();
      return value?.destinations[0]?.state === "paused";
    });
    await live.return(undefined);
    await running.logged(
      "that it pauses",
      ({ event, pipeline }) => event === "PipelinePaused" && pipeline === PIPELINE,
    );
    assert.equal((await change("resume", PIPELINE)).status, 200);
    const series = await until("the charts tell of it", async () => {
      const told = await seriesOf(ask);
      const isMarked = told.markers.some(({ pipeline, what }) => pipeline === PIPELINE && /^resumed/.test(what));
      return isMarked && told.points.at(-1)?.deadLetters === 1 ? told : null;
    });
    const marked = series.markers.filter(({ pipeline }) => pipeline === PIPELINE || pipeline === null);
    assert.deepEqual(
      marked.map(({ what }) => what.split(" ")[0]),
      ["this", "paused", "resumed"],
      "each once",
    );
    assert.ok(series.points.some(({ failed, published }) => published > 0 || failed > 0));

    await until("what came in is known", async () => (await overviewOf(ask)).writtenPerSecond !== null);
    await commandsAgree(it, ask);
    const watching = liveOverviews(`http://127.0.0.1:${port}/api/v1/live`);
    await watching.next();
    running.kill("SIGTERM");
    assert.equal((await running.ended).code, 0, "whoever watches keeps no service from ending");
    const rest = async () => {
      for await (const { service } of watching) assert.equal(service, "outbox-relay");
    };
    await assert.rejects(rest, /terminated/);
  });

  test("F3 G4: without its database the service says so in every answer, and goes on when it is back", async () => {
    const address = new URL(server().databaseUrl());
    await using proxy = await startTcpProxy(Number(address.port));
    await using it = await deadLetterStage(server());
    const through = new URL(it.relayUrl);
    through.port = String(proxy.port);
    const port = String(await freePort());
    await using running = await it.run({ PORT: port, DATABASE_URL: through.href });
    const ask = await clientOf(running, port);
    await running.becomes("healthy");
    await until("what waits is counted", async () => (await overviewOf(ask)).pending === 0);
    proxy.refuse(true);
    proxy.cut();
    const down = await until("it says that the database is gone", async () => {
      const told = await overviewOf(ask);
      const isGone = told.pending === null && told.instances.length === 0 && told.writtenPerSecond === null;
      return told.health === "unhealthy" && isGone ? told : null;
    });
    const problem = down.problems.find(({ what }) => what.startsWith("database postgres"));
    assert.match(problem?.fix ?? "", /^Check that the database runs/);
    assert.deepEqual([down.instances, down.writtenPerSecond, down.destinations[0]?.pending], [[], null, null]);
    const point = await until("the charts have a point without figures", async () =>
      (await seriesOf(ask)).points.find(({ pending }) => pending === null),
    );
    assert.equal(point.written, null);
    const { findings } = (await ask<Findings>("GET", "/api/v1/doctor")).body;
    assert.deepEqual([findings[0]?.severity, findings[0]?.check], ["error", "database"]);
    proxy.refuse(false);
    await until("it is well again", async () => {
      const { health, pending } = await overviewOf(ask);
      return health === "healthy" && pending === 0;
    });
    assert.ok(!JSON.stringify([down, findings]).includes("secret"));
  });

  test("F3 A14: the settings in force with their origins, after a reload too, and no secret in them", async () => {
    await using it = await deadLetterStage(server());
    const port = String(await freePort());
    const env = { API_TOKENS: "vera:viewer:canary-of-vera-and-16", ADMIN_TOKEN: "canary-of-admin-and-16" };
    const url = it.relayUrl.replace(":secret@", ":canary-password@");
    await using running = startService(["run", "--set", "LOG_LEVEL=warn"], {
      ...{ ...it.env, ...env, DATABASE_URL: url, PORT: port, LOKI_BASIC_AUTH: "canary:canary" },
      OUTBOX_DESTINATION: "http://canary:canary@127.0.0.1:1/hook",
    });
    const ask = await clientOf(running, port);
    const admin = { token: "canary-of-admin-and-16" };
    assert.equal((await ask("GET", "/api/v1/config", { token: "canary-of-vera-and-16" })).status, 403);
    assert.equal((await ask("GET", "/api/v1/overview", { token: "canary-of-vera-and-16" })).status, 200);
    const shown = async () => (await ask<Config>("GET", "/api/v1/config", admin)).body;
    const config = await shown();
    const setting = (name: string) => config.settings.find((one) => one.name === name);
    assert.deepEqual([setting("LOG_LEVEL")?.value, setting("LOG_LEVEL")?.origin], ["warn", "flag --set LOG_LEVEL"]);
    assert.deepEqual([setting("PORT")?.value, setting("PORT")?.origin], [port, "environment PORT"]);
    assert.equal(setting("BATCH_SIZE")?.origin, "preset of the table");
    assert.ok(config.settings.every(({ description, key }) => description !== "" && key !== ""));
    assert.doesNotMatch(JSON.stringify(config), /canary/);
    await it.write(FLAG, "a1");
    const told = await until("the destination takes nothing", async () => {
      const [destination] = (await ask<Overview>("GET", "/api/v1/overview", admin)).body.destinations;
      return destination?.state === "circuit-open" ? destination : null;
    });
    assert.match(told.lastError?.reason ?? "", /ECONNREFUSED/);
    running.kill("SIGHUP");
    const series = async () => (await ask<Series>("GET", "/api/v1/series", admin)).body;
    const marks = await until("the reload is marked", async () => {
      const words = (await series()).markers.map(({ what }) => what);
      return words.includes("settings reloaded") ? words : null;
    });
    assert.equal(marks[0], "this process has started", "what was known before is still known");
    assert.ok(marks.indexOf("circuit of http opened") > 0, marks.join());
    assert.doesNotMatch(JSON.stringify([told, await series()]), /canary/);
    assert.deepEqual(await shown(), config);
    assert.doesNotMatch(running.stdout() + running.stderr(), /canary/);
  });

  test("F3 D9: readers of logs are listed, and one whose log is lost is broken, not running", async () => {
    const database = `logs_${process.pid}`;
    await using it = await withManagedLog(await openStage(server(), { database, tables: [] }));
    const port = String(await freePort());
    await using running = startService(["run"], { ...it.env, PORT: port });
    const ask = await clientOf(running, port);
    await publish(it, 3);
    await until("they are delivered", async () => (await overviewOf(ask)).publishedTotal === "3");
    const listed = async () => (await ask<Logs>("GET", "/api/v1/logs")).body.logs;
    await untilEqual(
      "its checkpoint has followed",
      async () => (await listed()).map(({ kind, lag, lanes }) => [kind, lag, lanes.length]),
      [["managed", 0, 4]],
    );
    const state = async () => (await ask<Status>("GET", "/api/v1/status")).body.pipelines[0];
    await until("it runs", async () => (await state())?.state === "running");
    running.kill("SIGTERM");
    await running.ended;
    await it.sql(`update outbox_relay.lanes set position = replace(position::text, '"from"', '"form"')::jsonb`);
    const { code, stdout } = await runCommand(["status", "-o", "json"], it.env);
    const [lost] = (JSON.parse(stdout) as Status).pipelines;
    assert.deepEqual([code, lost?.state], [3, "broken"]);
    assert.match(lost?.countProblem ?? "", /LOG_LOST/);
  });
});

/** The figures come from surveys, each of which is made every few seconds. */
async function untilAllIsTold(ask: Ask): Promise<Overview> {
  const figures = ({ deadLetters, publishedTotal, parkedKeys, pending, drainMs, isEstimate }: Overview) => ({
    ...{ deadLetters, publishedTotal, parkedKeys },
    ...{ pending, drainMs, isEstimate },
  });
  await untilEqual("all is told", async () => figures(await overviewOf(ask)), {
    ...{ deadLetters: 1, publishedTotal: "3", parkedKeys: 1 },
    ...{ pending: 0, drainMs: 0, isEstimate: false },
  });
  return await until("the destination's times and its error are told", async () => {
    const told = await overviewOf(ask);
    const [destination] = told.destinations;
    return destination?.p99Ms != null && destination.lastError !== null && told.instances.length > 0 ? told : null;
  });
}

/** The command line says the same of doctor, pipelines and audit as the API does. */
async function commandsAgree(it: DeadLetterStage, ask: Ask): Promise<void> {
  const { body } = await ask<Findings>("GET", "/api/v1/doctor");
  const [doctor, top, audit, nonsense] = await Promise.all([
    it.command("doctor", "-o", "json"),
    it.command("top", "-o", "json"),
    it.command("audit", "--action", "pause", "--target", PIPELINE, "-o", "json"),
    it.command("audit", "--action", "puase"),
  ]);
  assert.deepEqual(body.findings, JSON.parse(doctor.stdout));
  assert.deepEqual((await ask<Logs>("GET", "/api/v1/logs")).body, { logs: [] });

  const snapshot = JSON.parse(top.stdout) as TopSnapshot;
  assert.deepEqual([snapshot.pipelines.length, snapshot.deadLetters, snapshot.parkedKeys], [4, 1, 1]);
  assert.equal(snapshot.pipelines.find(({ pipeline }) => pipeline === PIPELINE)?.state, "running");
  assert.equal(snapshot.publishedPerSecond, 0);
  const { entries } = JSON.parse(audit.stdout) as { entries: AuditEntry[] };
  assert.deepEqual(
    entries.map(({ action, target, via }) => [action, target, via]),
    [["pause", PIPELINE, "api"]],
  );
  assert.deepEqual([nonsense.code, /--action is "puase": write one of/.test(nonsense.stderr)], [2, true]);
}

/** The overviews of the stream, until the reader has enough. */
async function* liveOverviews(address: string): AsyncGenerator<Overview, undefined> {
  const leaving = new AbortController();
  const response = await fetch(address, { signal: leaving.signal });
  assert.match(response.headers.get("content-type") ?? "", /^text\/event-stream/);
  let text = "";
  try {
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
      text += chunk;
      for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
        const message = text.slice(0, end);
        text = text.slice(end + 2);
        const [, data] = /^event: overview\ndata: (.*)$/.exec(message) ?? [];
        if (data !== undefined) yield JSON.parse(data) as Overview;
      }
    }
  } finally {
    leaving.abort();
  }
}
