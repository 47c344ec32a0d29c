import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { freePort } from "../servers/free-port.ts";
import { startReceiver } from "../servers/receiver.ts";
import { until } from "../servers/until.ts";
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
    const health = await running.becomes("degraded");
    assert.match(JSON.stringify(health.problems), /dead/);
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
});
