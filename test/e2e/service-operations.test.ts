import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { EXIT } from "../../src/service/exit.ts";
import { freePort } from "../servers/free-port.ts";
import { assertWithin } from "../servers/pace.ts";
import { type PostgresServer, startPostgres } from "../servers/postgres.ts";
import { until } from "../servers/until.ts";
import { BILLING, ORDERS } from "./outbox-tables.ts";
import { COMMAND, runCommand, startService } from "./service-process.ts";
import { openStage, type Stage } from "./stage.ts";

let server: PostgresServer;
let stages = 0;
before(async () => {
  server = await startPostgres({ version: 18, flags: ["-c", "fsync=on"] });
});
after(() => server[Symbol.asyncDispose]());

const ORDERS_PIPELINE = "orders.outbox->stdout";

async function stage(): Promise<Stage & { env: Record<string, string> }> {
  stages += 1;
  const it = await openStage(server, { database: `operations_${stages}`, tables: [ORDERS, BILLING] });
  return {
    ...it,
    env: { DATABASE_URL: it.relayUrl, OUTBOX_SCHEMAS: "orders,billing", OUTBOX_DESTINATION: "stdout:" },
  };
}

async function insert({ sql }: Stage, table: string, count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, () => randomUUID());
  await sql(
    `insert into ${table} (id, aggregate_id, event_type, payload)
     select id, 'key-' || n % 7, 'order.placed', '{}' from unnest($1::uuid[]) with ordinality u(id, n)`,
    [ids],
  );
  return ids;
}

const left = async ({ sql }: Stage, table: string, pending: string): Promise<number> =>
  Number((await sql<{ count: string }>(`select count(*) from ${table} where ${pending}`))[0]?.count);

interface ShownStatus {
  readonly pipelines: readonly {
    readonly pipeline: string;
    readonly pending: number;
    readonly ownedLanes: number;
    readonly pause: { readonly by: string; readonly reason: string } | null;
  }[];
  readonly instances: readonly { readonly leaseRemainingMs: number }[];
  readonly problems: readonly string[];
}

async function status(env: Record<string, string>): Promise<{ code: number | null; status: ShownStatus }> {
  const { code, stdout, stderr } = await runCommand(["status", "-o", "json"], env);
  assert.notEqual(stdout, "", stderr);
  return { code, status: JSON.parse(stdout) as ShownStatus };
}

describe("operations", { concurrency: 3 }, () => {
  describe("outbox-relay status, pause and resume", { concurrency: true }, () => {
    test("A17 a paused pipeline stops within seconds, through a restart, while others go on, and stays healthy", async () => {
      await using it = await stage();
      const env = { ...it.env, PORT: String(await freePort()) };
      const first = startService(["run"], env);
      await first.becomes("healthy");
      const paused = await runCommand(["pause", "orders", "--reason", "a deploy"], it.env);
      assert.deepEqual([paused.code, paused.stderr], [0, ""]);
      assert.match(paused.stdout, /^orders\.outbox->stdout: paused/);
      const told = await first.logged("that it is paused", ({ event }) => event === "PipelinePaused");
      assert.deepEqual([told.pipeline, told.reason], [ORDERS_PIPELINE, "a deploy"]);
      first.kill("SIGTERM");
      assert.equal((await first.ended).code, 0);
      await using second = startService(["run"], env);
      await second.logged("that it is paused", ({ event }) => event === "PipelinePaused");
      await insert(it, "orders.outbox", 10);
      await insert(it, "billing.outbox_events", 10);
      await until(
        "the others are delivered",
        async () => (await left(it, "billing.outbox_events", "processed_at is null")) === 0,
      );
      await it.sql(`insert into outbox_relay.pipelines (name, source_schema, source_table, lanes)
        values ('orders.outbox->former', 'orders', 'outbox', 1)`);
      const { code, orders } = await until("it has the paused lanes too", async () => {
        const { code, status: shown } = await status(it.env);
        const orders = shown.pipelines.find(({ pipeline }) => pipeline === ORDERS_PIPELINE);
        return orders?.ownedLanes === 4 && { code, orders };
      });
      assert.deepEqual([code, orders?.pending, orders?.ownedLanes, orders?.pause?.reason], [0, 10, 4, "a deploy"]);
      assert.equal(await left(it, "orders.outbox", "not published"), 10);
      assert.equal((await second.get("/health")).json().status, "healthy");
      const resumed = await runCommand(["resume", "--all"], it.env);
      assert.match(
        resumed.stdout,
        /^billing.*: was not paused\n.*former: was not paused\norders\.outbox->stdout: resumed\n$/,
      );
      await until("the rest is delivered", async () => (await left(it, "orders.outbox", "not published")) === 0);
      await second.logged("that it is resumed", ({ event }) => event === "PipelineResumed");
      assert.equal(second.logs(({ event }) => event === "PipelineResumed").length, 1);
    });

    test("A17 H18 run --once says what waits in a paused pipeline and exits 5; one command pauses a whole destination", async () => {
      await using it = await stage();
      assert.equal((await runCommand(["run", "--once"], it.env)).code, 0);
      await insert(it, "orders.outbox", 3);
      await insert(it, "billing.outbox_events", 2);
      assert.equal((await runCommand(["pause", ORDERS_PIPELINE], it.env)).code, 0);
      const { code, stderr } = await runCommand(["run", "--once"], it.env);
      assert.equal(code, 5, stderr);
      assert.match(stderr, /^2 events delivered; 3 wait in orders\.outbox->stdout, which is paused$/m);
      const told = async (...line: string[]) => {
        const done = await runCommand(line, it.env);
        return [done.code, ...done.stdout.split("\n").map((text) => text.replace(/^\S+: /, "")), done.stderr];
      };
      const soon = "paused; relays stop claiming within three seconds";
      assert.deepEqual(await told("pause", "--destination", "stdout"), [0, soon, "was already paused", "", ""]);
      assert.deepEqual(await told("resume", "--destination", "stdout"), [0, "resumed", "resumed", "", ""]);
      const rate = "limited to 5 events per second for each relay; takes effect within three seconds";
      assert.deepEqual(await told("limit", "--destination", "stdout", "5/s"), [0, rate, rate, "", ""]);
      const [unknown, , why] = await told("pause", "--destination", "kafka");
      assert.deepEqual([unknown, /destinations: stdout/.test(String(why))], [EXIT.notFound, true], String(why));
      assert.equal((await told("pause", "orders", "--destination", "stdout"))[0], EXIT.usage);
    });

    test("A18 status tells by the database alone what is wrong: exit 3 without an instance, 0 without trouble", async () => {
      await using it = await stage();
      const none = await status(it.env);
      assert.deepEqual([none.code, none.status.pipelines], [0, []]);
      await runCommand(["run", "--once"], it.env);
      assert.equal((await status(it.env)).code, 0);
      await insert(it, "orders.outbox", 4);
      const waiting = await status(it.env);
      assert.deepEqual(
        [waiting.code, waiting.status.problems],
        [3, [`${ORDERS_PIPELINE} has events waiting and no live instance`]],
      );
      await it.sql("update orders.outbox set created_at = now() - interval '5 minutes'");
      const late = await runCommand(["status"], it.env);
      assert.equal(late.code, 3);
      assert.match(late.stdout, /orders\.outbox->stdout +not served +at-least-once +0 owned, 4 free +4 +5 min/);
      assert.match(
        late.stdout,
        /No live instances\.\n\nSchema outbox_relay, version \d+\nHealth, from the database alone: degraded\n! .*no live instance\n! .* is 3\d\d s late/,
      );
      const nobody = await runCommand(["pause", "nowhere"], it.env);
      assert.equal(nobody.code, 4);
      assert.match(nobody.stderr, /no pipeline, source or schema named nowhere; pipelines: billing/);
      assert.equal((await runCommand(["pause"], it.env)).code, 2);
    });
  });

  describe("outbox-relay lanes", { concurrency: true }, () => {
    test("A17 B4 the number of lanes changes under a running relay, nothing is lost, doubled or out of order", async () => {
      await using it = await stage();
      const env = { ...it.env, PORT: String(await freePort()) };
      await using service = startService(["run"], env);
      await service.becomes("healthy");
      const ids = await insert(it, "orders.outbox", 200);
      const refused = await runCommand(["lanes", "set", ORDERS_PIPELINE, "8"], it.env);
      assert.equal(refused.code, 2);
      assert.match(refused.stderr, /is not paused.*`outbox-relay pause 'orders\.outbox->stdout'` first/);
      await runCommand(["pause", ORDERS_PIPELINE], it.env);
      for (const lanes of [9, 2]) {
        ids.push(...(await insert(it, "orders.outbox", 200)));
        const changed = await runCommand(["lanes", "set", ORDERS_PIPELINE, String(lanes)], it.env);
        assert.equal(changed.code, 0, changed.stderr);
        assert.match(changed.stdout, new RegExp(`: ${lanes} lanes instead of \\d; it is still paused`));
        await until("all lanes are owned", async () => {
          const { stdout } = await runCommand(["lanes", ORDERS_PIPELINE, "-o", "json"], it.env);
          const shown = JSON.parse(stdout) as { owner: { isAlive: boolean } | null }[];
          return shown.length === lanes && shown.every(({ owner }) => owner?.isAlive);
        });
      }
      await runCommand(["resume", ORDERS_PIPELINE], it.env);
      ids.push(...(await insert(it, "orders.outbox", 200)));
      await until("all is delivered", async () => (await left(it, "orders.outbox", "not published")) === 0);
      const printed = () =>
        service
          .stdout()
          .split("\n")
          .filter((line) => /^\{"id":.*\}$/.test(line));
      const lines = await until("all is printed", () => printed().length >= ids.length && printed());
      const events = lines.map((line) => JSON.parse(line) as { id: string; key: string });
      assert.deepEqual(events.map(({ id }) => id).toSorted(), ids.toSorted());
      const written = new Map(ids.map((id, at) => [id, at]));
      for (const [key, ofKey] of Map.groupBy(events, ({ key }) => key)) {
        const order = ofKey.map(({ id }) => written.get(id)!);
        assert.deepEqual(
          order,
          order.toSorted((a, b) => a - b),
          `the order of ${key}`,
        );
      }
    });

    test("B4 held events follow their keys to the new lanes, and what was published is still counted", async () => {
      await using it = await stage();
      const env = { ...it.env, OUTBOX_SCHEMAS: "orders", TOPIC_TEMPLATE: "{header:tenant}", LANES: "8" };
      await insert(it, "orders.outbox", 30);
      await it.sql(`update orders.outbox set headers = '{"tenant": "acme"}' where aggregate_id <> 'key-3'`);
      assert.equal((await runCommand(["run", "--once"], env)).code, 5);
      await runCommand(["pause", "--all"], env);
      const set = await runCommand(["lanes", "set", "orders", "3"], env);
      assert.equal(set.code, 0, set.stderr);
      const [row] = await it.sql<{ lanes: string; published: string; wrong: string }>(
        `select (select count(*) from outbox_relay.lanes) as lanes, (select sum(published_total) from outbox_relay.lanes) as published,
         (select count(*) from outbox_relay.holds where lane <> mod(hashtextextended(event_key, 0) & 9223372036854775807, 3)) as wrong`,
      );
      assert.deepEqual(row, { lanes: "3", published: "26", wrong: "0" });
    });
  });

  describe("outbox-relay doctor", { concurrency: true }, () => {
    test("A3 A17 G6 what doctor prints mends what it found: exit 3 before, 0 after; 1 when it cannot look", async () => {
      await using it = await stage();
      const healthy = await runCommand(["doctor"], it.env);
      assert.deepEqual([healthy.code, healthy.stderr], [0, ""]);
      assert.match(healthy.stdout, /^No problems found: 2 tables/);
      await it.sql(`revoke update on orders.outbox from ${it.role}; drop index orders.outbox_created_at_idx`);
      await it.sql("alter table orders.outbox alter created_at set default now()");
      for (const checks of [["grants"], ["index", "order"]]) {
        const { code, stdout } = await runCommand(["doctor", "-o", "json"], it.env);
        const found = JSON.parse(stdout) as { check: string; fix: string }[];
        assert.deepEqual([code, found.map(({ check }) => check)], [3, checks]);
        for (const { fix } of found) await it.sql(fix.split("\n-- or, cheaper: ").at(-1) ?? "");
      }
      assert.equal((await runCommand(["doctor"], it.env)).code, 0);
      const broken = await runCommand(["doctor"], { ...it.env, OUTBOX_SCHEMAS: "orders,nowhere" });
      assert.equal(broken.code, 3);
      assert.match(
        broken.stdout,
        /^✗ tables: The table nowhere\.outbox does not exist\n {4}Create it.*\n\n1 error, 0 warnings\n$/,
      );
      const noBroker = {
        ...it.env,
        OUTBOX_DESTINATION: `kafka://127.0.0.1:${await freePort()}`,
        DELIVERY: "at-least-once",
      };
      assert.match(
        (await runCommand(["doctor"], noBroker)).stdout,
        /✗ destination: kafka cannot be reached: .*nothing listens there/,
      );
      const url = `postgres://me:hunter2@127.0.0.1:${await freePort()}/x`;
      const blind = await runCommand(["doctor"], { ...it.env, DATABASE_URL: url });
      assert.equal(blind.code, 1);
      assert.doesNotMatch(blind.stdout + blind.stderr, /hunter2/);
    });
  });

  test("G6 progress is drawn on a terminal and nowhere else", async () => {
    await using it = await stage();
    await it.sql(`grant insert on orders.outbox to ${it.role}`);
    await runCommand(["run", "--once"], it.env);
    const args = ["smoke", "--table", "orders.outbox", "--timeout", "400ms"];
    const piped = await runCommand(args, it.env);
    assert.doesNotMatch(piped.stdout + piped.stderr, /░/);
    const onTerminal = `script -qec "'${COMMAND}' ${args.join(" ")}" /dev/null`;
    await using terminal = startService(["-c", onTerminal], it.env, "/bin/sh");
    const { stdout } = await terminal.ended;
    assert.match(stdout, /░ 0 of 1.*was not delivered within \d+ ms/s);
  });

  describe("outbox-relay smoke", { concurrency: true }, () => {
    test("A21 a test event goes all the way through a running relay, and its latency is told", async () => {
      await using it = await stage();
      await it.sql(`grant insert on orders.outbox, billing.outbox_events to ${it.role}`);
      const env = { ...it.env, PORT: String(await freePort()) };
      await using service = startService(["run"], env);
      await service.becomes("healthy");
      const url = `http://127.0.0.1:${env.PORT}`;
      const { code, stdout, stderr } = await runCommand(["smoke", "--table", "orders.outbox", "--url", url], it.env);
      assert.equal(code, 0, stdout + stderr);
      assert.match(
        stderr,
        /of type outbox-relay\.smoke to orders\.outbox\. Consumers of the destination will receive it/,
      );
      const [, ms, id] = /^delivered after (\d+) ms: event (\S+)\n$/.exec(stdout) ?? [];
      await assertWithin(Number(ms), 10_000, "the smoke event");
      const line = new RegExp(`^{"id":"${id}".*outbox-relay\\.smoke`, "m");
      await until("it is printed", () => line.test(service.stdout()));
      const other = await runCommand(
        ["smoke", "--table", "billing.outbox_events", "--type", "t", "-o", "json"],
        it.env,
      );
      assert.equal((JSON.parse(other.stdout) as { outcome: string }).outcome, "delivered", other.stderr);
    });

    test("A21 smoke fails with the reason: no relay, no right, paused, a dead letter, a health that is none", async () => {
      await using it = await stage();
      const smoke = (...more: string[]) =>
        runCommand(["smoke", "--table", "orders.outbox", "--timeout", "300ms", ...more], it.env);
      const unread = await smoke();
      assert.deepEqual(
        [unread.code, /No relay has ever read orders\.outbox/.test(unread.stderr)],
        [1, true],
        unread.stderr,
      );
      await runCommand(["run", "--once"], it.env);
      const refused = await smoke();
      assert.equal(refused.code, 2);
      assert.match(
        refused.stderr,
        /lacks the right to write a test event: grant insert on "orders"\."outbox" to "relay_operations_\d+";/,
      );
      await it.sql(`grant insert on orders.outbox to ${it.role}`);
      const late = await smoke();
      assert.equal(late.code, 1);
      assert.match(late.stdout, /was not delivered within \d+ ms: no live instance serves it/);
      await runCommand(["pause", "orders"], it.env);
      const paused = await smoke();
      assert.deepEqual([paused.code, /orders\.outbox is paused: run/.test(paused.stderr)], [2, true]);
      const sick = await smoke("--url", `http://127.0.0.1:${await freePort()}`);
      assert.deepEqual([sick.code, /is not healthy: .*ECONNREFUSED/.test(sick.stderr)], [1, true], sick.stderr);
      await runCommand(["resume", "orders"], it.env);
      const env = { ...it.env, TOPIC_TEMPLATE: "{header:tenant}", PORT: String(await freePort()) };
      await using service = startService(["run"], env);
      await service.becomes("healthy");
      const dead = await smoke("--timeout", "60s");
      assert.deepEqual([dead.code, /is a dead letter: .*TOPIC_TEMPLATE/.test(dead.stdout)], [1, true], dead.stdout);
    });
  });

  test("G6 the Tab key completes commands, their parts and options in bash", async () => {
    const { code, stdout } = await runCommand(["completion", "bash"], {});
    assert.equal(code, 0);
    const complete = (...words: string[]): string[] => {
      const typed = words.map((word) => `'${word}'`).join(" ");
      const script = `${stdout}\nCOMP_WORDS=(outbox-relay ${typed}); COMP_CWORD=${words.length}; _outbox_relay; echo "\${COMPREPLY[*]}"`;
      return execFileSync("bash", ["-c", script], { encoding: "utf8" }).trim().split(" ");
    };
    assert.deepEqual(complete("dl"), ["dlq"]);
    assert.deepEqual(complete("pa"), ["pause"]);
    assert.deepEqual(complete("lanes", ""), ["list", "set"]);
    assert.deepEqual(complete("lanes", "set", "--ti"), ["--timeout"]);
    assert.deepEqual(complete("completion", "z"), ["zsh"]);
    assert.ok(complete("run", "--").includes("--once"));
    for (const shell of ["zsh", "fish"]) {
      const script = (await runCommand(["completion", shell], {})).stdout;
      for (const word of ["dlq", "pause", "timeout", "doctor"]) assert.match(script, new RegExp(`\\b${word}\\b`));
    }
    assert.equal((await runCommand(["completion", "csh"], {})).code, 2);
  });
});
