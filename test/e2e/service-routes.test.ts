import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { freePort } from "../servers/free-port.ts";
import { startReceiver } from "../servers/receiver.ts";
import { until, untilEqual } from "../servers/until.ts";
import { ORDERS } from "./outbox-tables.ts";
import { runCommand, type ServiceProcess, startService } from "./service-process.ts";
import { serverOfFile, stagesOn } from "./service-stage.ts";
import type { Stage } from "./stage.ts";

const stage = stagesOn(serverOfFile(), "routes", [ORDERS]);

async function insert({ sql }: Stage, type: string, key = "k", headers: object = {}): Promise<void> {
  await sql("insert into orders.outbox (aggregate_id, event_type, payload, headers) values ($1, $2, $3, $4)", [
    key,
    type,
    '{"big": 12345678901234567890}',
    headers,
  ]);
}

const settings = (it: Stage, destinations: object, routes: readonly object[]) => ({
  DATABASE_URL: it.relayUrl,
  OUTBOX_SCHEMAS: "orders",
  OUTBOX_DESTINATIONS: JSON.stringify(destinations),
  OUTBOX_ROUTES: JSON.stringify(routes),
});

async function pendingTypes({ sql }: Stage): Promise<string[]> {
  const rows = await sql<{ type: string }>(
    "select event_type as type from orders.outbox where not published order by 1",
  );
  return rows.map(({ type }) => type);
}

const printed = (process: Pick<ServiceProcess, "stdout">): { type: string }[] =>
  process
    .stdout()
    .split("\n")
    .filter((line) => line.startsWith('{"id":'))
    .map((line) => JSON.parse(line) as { type: string });

describe("routes of the service", { concurrency: 3 }, () => {
  test("D1 B6: one process serves several destinations, by type, by condition, in an envelope, and throws away on purpose", async () => {
    await using it = await stage();
    await using receiver = await startReceiver();
    for (const type of ["order.placed", "bill.paid", "debug.trace"]) await insert(it, type);
    await insert(it, "order.placed", "vip-7", { region: "eu" });
    const env = settings(it, { web: { url: receiver.url }, out: { url: "stdout:" }, nowhere: { url: "discard:" } }, [
      {
        types: "order.*",
        when: { key: "vip-*", "header:region": ["eu", "uk"] },
        destination: "web",
        envelope: "cloudevents-structured",
      },
      {
        types: "bill.*",
        destination: "web",
        headers: { "x-source": "{schema}.{table}" },
        envelope: "cloudevents-binary",
      },
      { types: "debug.*", destination: "nowhere" },
      { destination: "out", topic: "all.{type}" },
    ]);
    const { code, stderr, stdout } = await runCommand(["run", "--once"], env);
    assert.equal(code, 0, stderr);
    assert.deepEqual(await pendingTypes(it), []);
    assert.match(stderr, /4 events delivered/);
    const lines = stdout.trim().split("\n");
    assert.equal(lines.length, 1, stdout);
    assert.match(lines[0]!, /"all\.order\.placed"/);
    const structured = receiver.requests.find(({ headers }) =>
      headers["content-type"]?.startsWith("application/cloudevents"),
    );
    const binary = receiver.requests.find(({ headers }) => headers["ce-type"] === "bill.paid");
    assert.equal(receiver.requests.length, 2);
    assert.match(
      String(structured?.body),
      /^\{"specversion":"1\.0".*"partitionkey":"vip-7".*"data":\{"big": 12345678901234567890\}\}$/,
    );
    assert.equal(String(binary?.body), '{"big": 12345678901234567890}');
    assert.deepEqual(
      [binary?.headers["x-source"], binary?.headers["ce-source"]],
      ["orders.outbox", "/outbox-relay/orders/outbox"],
    );
  });

  test("D6: an event that no route takes is kept, and told once a look finds it", async () => {
    await using it = await stage();
    await insert(it, "order.placed");
    await insert(it, "nobody.wants");
    const env = settings(it, { out: { url: "stdout:" } }, [{ types: "order.*" }]);
    const { code, stdout } = await runCommand(["run", "--once"], env);
    assert.equal(code, 0);
    assert.match(stdout, /order\.placed/);
    assert.deepEqual(await pendingTypes(it), ["nobody.wants"]);
  });

  test("F4 A18: a dead destination stops its own events and no others, and the health names it", async () => {
    await using it = await stage();
    const env = settings(it, { dead: { url: `http://127.0.0.1:${await freePort()}/x` }, out: { url: "stdout:" } }, [
      { types: "dead.*", destination: "dead" },
      { destination: "out" },
    ]);
    await using running = startService(["run"], { ...env, PORT: String(await freePort()) });
    for (let at = 0; at < 20; at += 1) await insert(it, at % 2 === 0 ? "dead.letter" : "order.placed");
    await until("the others are delivered", () => printed(running).length === 10);
    await until("health names it", async () =>
      /dead/.test(JSON.stringify((await running.becomes("degraded")).problems)),
    );
    await until("only the dead destination's wait", async () => {
      const waiting = await pendingTypes(it);
      return waiting.length === 10 && waiting.every((type) => type === "dead.letter");
    });
    running.kill("SIGTERM");
    assert.equal((await running.ended).code, 0);
    const { code, stderr } = await runCommand(["run", "--once"], env);
    assert.equal(code, 1, stderr);
    assert.match(stderr, /not reachable: dead/);
  });

  test("D2: a relay for one type takes that route alone and leaves the rest, in silence", async () => {
    await using it = await stage();
    for (const type of ["bill.paid", "order.placed"]) await insert(it, type);
    const env = settings(it, { out: { url: "stdout:" }, nowhere: { url: "discard:" } }, [
      { types: ["bill.*", "order.*"], destination: "out" },
      { destination: "nowhere" },
    ]);
    const { code, stdout, stderr } = await runCommand(["run", "--once", "--only", "bill.paid"], env);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /bill\.paid/);
    assert.deepEqual(await pendingTypes(it), ["order.placed"]);
    assert.doesNotMatch(stderr, /order\.placed/);
  });

  test("H1 G4: after a change of routes the old pipeline is named and marked, not late, and can be forgotten", async () => {
    await using it = await stage();
    await insert(it, "order.placed", "a", { tenant: "acme" });
    await insert(it, "order.placed", "b");
    const topic = "{header:tenant}";
    const old = settings(it, { old: { url: "stdout:" } }, [{ destination: "old", topic }]);
    assert.equal((await runCommand(["run", "--once"], old)).code, 5, "one lacks its tenant");
    const env = { ...settings(it, { fresh: { url: "stdout:" } }, [{ destination: "fresh" }]) };
    const port = String(await freePort());
    await using running = startService(["run"], { ...env, PORT: port });
    await running.becomes("healthy");
    const [OLD, FRESH] = ["orders.outbox->old", "orders.outbox->fresh"];
    const command = (...args: string[]) => runCommand(args, env);
    await until("the orphan is told", () =>
      running.stderr().includes(`The pipeline ${OLD} is not configured any more`),
    );
    const tell = async () => JSON.parse((await command("status", "-o", "json")).stdout);
    await untilEqual(
      "its state is told",
      async () =>
        (await tell()).pipelines.map((one: { pipeline: string; state: string }) => `${one.pipeline} ${one.state}`),
      [`${FRESH} running`, `${OLD} no longer configured`],
    );
    const status = await tell();
    assert.doesNotMatch(status.problems.join(), /late|no live instance/);
    const doctor = await command("doctor");
    assert.match(doctor.stdout, /- pipelines: .*orders\.outbox->old[\s\S]*pipeline forget 'orders\.outbox->old'/);

    const served = await command("pipeline", "forget", FRESH, "--yes");
    assert.deepEqual(
      [served.code, /is served by .* cannot be forgotten/.test(served.stderr)],
      [2, true],
      served.stderr,
    );
    assert.equal((await command("pipeline", "forget", "orders.outbox", "--yes")).code, 2, "by its whole name alone");
    assert.equal((await command("pipeline", "forget", OLD)).code, 2, "nobody to ask");
    const refused = await command("pipeline", "forget", OLD, "--yes");
    assert.deepEqual([refused.code, /1 dead letter is discarded.*--give-up-events/.test(refused.stderr)], [2, true]);
    const post = async (body: object) => {
      const url = `http://127.0.0.1:${port}/api/v1/pipelines/${encodeURIComponent(OLD)}/forget`;
      const headers = { "content-type": "application/json" };
      const answer = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
      return { status: answer.status, body: (await answer.json()) as { givenUp: string[]; isDone: boolean } };
    };
    assert.equal((await post({})).status, 409);
    const dry = await post({ dryRun: true });
    assert.deepEqual([dry.status, dry.body.givenUp.length, dry.body.isDone], [200, 1, false]);
    const done = await command("pipeline", "forget", OLD, "--give-up-events", "--yes", "--reason", "renamed");
    assert.deepEqual([done.code, done.stdout.split("\n")[0]], [0, `${OLD} is deleted`], done.stderr);
    assert.equal((await post({})).status, 404, "it is gone");
    assert.equal((await it.sql("select from outbox_relay.pipelines")).length, 1);
    const [entry] = await it.sql("select target, reason from outbox_relay.audit where action = 'pipeline-forget'");
    assert.deepEqual(entry, { target: OLD, reason: "renamed" });
    const [letter] = await it.sql("select resolution, resolution_note from outbox_relay.failed_events");
    assert.deepEqual(letter, { resolution: "discarded", resolution_note: "renamed" });
    assert.deepEqual(JSON.parse((await command("status", "-o", "json")).stdout).pipelines.length, 1);
  });
});
