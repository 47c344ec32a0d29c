import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, test } from "node:test";
import { freePort } from "../servers/free-port.ts";
import { startReceiver } from "../servers/receiver.ts";
import { until, untilEqual } from "../servers/until.ts";
import { logs, once, printed, publish, type Settings, told, withManagedLog } from "./log-stage.ts";
import { runCommand, startService } from "./service-process.ts";
import { serverOfFile, stagesOn } from "./service-stage.ts";

const stage = stagesOn(serverOfFile(), "logs", []);
const stageWithLog = async (settings: Settings = {}) => await withManagedLog(await stage(), settings);

/** Answers late. */
async function startSlowReceiver() {
  let count = 0;
  const receiver = createServer((request, response) => {
    request.resume();
    count += 1;
    setTimeout(() => response.end(), 1_000); // why: what is slow is the destination itself
  });
  await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`,
    count: () => count,
    [Symbol.asyncDispose]: async () => {
      receiver.closeAllConnections();
      await new Promise((resolve) => receiver.close(resolve));
    },
  };
}

describe("logs of the service", { concurrency: 2 }, () => {
  test("D9 A1: migrate creates a managed outbox, its function writes, and each event is delivered once", async () => {
    await using it = await stageWithLog();
    await publish(it, 20);
    const first = await once(it.env);
    assert.equal(first.code, 0, first.stderr);
    assert.match(first.stderr, /20 events delivered/);
    assert.equal(printed(first).length, 20);
    await publish(it, 3);
    const second = await once(it.env);
    assert.equal(printed(second).length, 3, second.stderr);
    const [log] = await logs(it.env);
    assert.deepEqual([log?.pipeline, log?.kind, log?.lag, log?.parked], ["shop.log->stdout", "managed", 0, 0]);
    assert.match(await told(["migrate", "up"], it.env), /nothing to do/);
    assert.match(await told(["migrate", "up", "--sql"], it.env), /create table "shop"\."log"/);
    const listed = JSON.parse(await told(["events", "list", "-o", "json"], it.env)) as { events: { state: string }[] };
    assert.deepEqual([...new Set(listed.events.map(({ state }) => state))], ["delivered"]);
  });

  test("H1 D9 A11: what the readers of a log pass because no route takes it is unrouted, not delivered", async () => {
    await using it = await stageWithLog({ OUTBOX_ROUTES: '[{"types": "order.*"}, {"types": "mail.*"}]' });
    await publish(it, 3);
    await publish(it, 2, "mail.sent");
    await publish(it, 1, "strange.thing");
    assert.equal(printed(await once(it.env)).length, 5);
    const states = async (...filter: readonly string[]) => {
      const listed = JSON.parse(await told(["events", "list", ...filter, "-o", "json"], it.env));
      const { events } = listed as { events: { type: string; state: string }[] };
      return events.map(({ state, type }) => `${type} ${state}`).toSorted();
    };
    const [order, mail] = ["order.placed delivered", "mail.sent delivered"];
    assert.deepEqual(await states(), [mail, mail, order, order, order, "strange.thing unrouted"]);
    assert.deepEqual(await states("state:delivered"), [mail, mail, order, order, order]);
    assert.deepEqual(await states("state:unrouted"), ["strange.thing unrouted"]);
    const { stdout } = await runCommand(["doctor", "-o", "json"], it.env);
    const found = (JSON.parse(stdout) as { check: string; severity: string; what: string }[]).filter(
      ({ check }) => check === "takers",
    );
    assert.deepEqual(
      found.map(({ severity, what }) => `${severity}: ${what}`),
      [
        "warning: No route matches these events of shop.log, so its readers pass them without a delivery: strange.thing (1)",
      ],
    );
    assert.deepEqual(await states("destination:stdout"), [mail, mail, order, order, order]);
  });

  test("H1 D9: subscribers of a log that had none: it is told what goes out again, and the old reader can be forgotten", async () => {
    await using it = await stageWithLog();
    await publish(it, 20);
    assert.equal(printed(await once(it.env)).length, 20);
    const env = { ...it.env, OUTBOX_SUBSCRIBERS: "[{name: audit}]", PORT: String(await freePort()) };
    const doctor = await runCommand(["doctor"], env);
    assert.match(
      doctor.stdout,
      /shop\.log->stdout is not configured any more, and no instance serves it; it blocks the retention of its log\. shop\.log@audit->stdout/,
    );
    assert.match(doctor.stdout, /from the beginning, they deliver 20 delivered events again/);
    await using running = startService(["run"], env);
    await until("the subscriber has read the log", () => printed({ stdout: running.stdout() }).length === 20);
    await until("it is told", () => running.stderr().includes("deliver 20 delivered events again"));
    await publish(it, 3);
    const tell = async () => JSON.parse((await runCommand(["status", "-o", "json"], env)).stdout);
    await untilEqual(
      "its state is told",
      async () =>
        (await tell()).pipelines.map((one: { pipeline: string; state: string }) => `${one.pipeline} ${one.state}`),
      ["shop.log->stdout no longer configured", "shop.log@audit->stdout running"],
    );
    const status = await tell();
    assert.doesNotMatch(status.problems.join(), /shop\.log->stdout/);
    const forget = (...more: string[]) => runCommand(["pipeline", "forget", "shop.log->stdout", "--yes", ...more], env);
    const refused = await forget();
    assert.deepEqual([refused.code, /3 undelivered events/.test(refused.stderr)], [2, true], refused.stderr);
    assert.equal((await forget("--give-up-events")).code, 0);
    assert.deepEqual(
      (await logs(env)).map(({ pipeline }) => pipeline),
      ["shop.log@audit->stdout"],
    );
  });

  test("D9 F4: of three subscribers one is dead and one slow; the fast one is unaffected, retention waits, and the alarm shows it", async () => {
    // Nobody listens there yet.
    const deadPort = await freePort();
    await using slow = await startSlowReceiver();
    await using fast = await startReceiver();
    const port = await freePort();
    await using it = await stageWithLog({
      PORT: String(port),
      OUTBOX_DESTINATION: "",
      OUTBOX_DESTINATIONS: JSON.stringify({
        dead: { url: `http://127.0.0.1:${deadPort}` },
        slow: { url: slow.url },
        fast: { url: fast.url },
      }),
      OUTBOX_SUBSCRIBERS: JSON.stringify(["dead", "slow", "fast"].map((name) => ({ name, destination: name }))),
      RETENTION: "1d",
    });
    // A part of the log that is older than its retention.
    await it.sql(`create table shop.log_p20200101 partition of shop.log for values from ('2020-01-01') to ('2020-01-02');
      insert into shop.log (event_type, event_key, payload, created_at) values ('old', 'k', '{}', '2020-01-01T12:00:00Z')`);
    await publish(it, 100);
    await using service = startService(["run"], it.env);
    await until("the fast one has all", () => fast.requests.length >= 101);
    assert.ok(slow.count() < 101, "the slow one is not done yet");
    await publish(it, 50);
    await until("the fast one goes on", () => fast.requests.length >= 151);
    const alarms = await until("the alarm is there", async () => {
      const { body } = await service.get("/metrics");
      return /^outbox_relay_log_retention_waiting\{pipeline="shop\.log@dead->dead"\} 1$/m.test(body) ? body : null;
    });
    assert.match(alarms, /^outbox_relay_log_retention_waiting\{pipeline="shop\.log@fast->fast"\} 0$/m);
    await until("its lag is told", async () =>
      /^outbox_relay_log_lag_events\{pipeline="shop\.log@dead->dead"\} 1\d\d$/m.test(
        (await service.get("/metrics")).body,
      ),
    );
    const listed = await logs(it.env);
    const waits = (name: string) => listed.find(({ subscriber }) => subscriber === name)?.retentionWaits;
    assert.deepEqual([waits("dead"), waits("fast")], ["shop.log_p20200101", null]);
    assert.match(
      await told(["log", "list"], it.env),
      /shop\.log@dead->dead keeps shop\.log_p20200101 from being dropped/,
    );
    await using _dead = await startReceiver(deadPort);
    const isDropped = async () =>
      (await it.sql<{ there: string | null }>("select to_regclass('shop.log_p20200101')::text as there"))[0]?.there ===
      null;
    await until("nobody needs it any more, and it is dropped", isDropped);
    service.kill("SIGTERM");
    assert.equal((await service.ended).code, 0);
    assert.equal(new Set(fast.requests.map(({ headers }) => headers["event-id"] ?? headers["webhook-id"])).size, 151);
  });

  test("D9: a subscriber that comes later begins at the beginning, at a time, or now", async () => {
    const of = (...subscribers: readonly object[]) => ({ OUTBOX_SUBSCRIBERS: JSON.stringify(subscribers) });
    await using it = await stageWithLog(of({ name: "first" }));
    await publish(it, 4, "early");
    await once(it.env);
    const [row] = await it.sql<{ at: Date }>("select clock_timestamp() as at");
    await publish(it, 3, "late");
    const later = await once({
      ...it.env,
      ...of(
        { name: "first", types: "none" },
        { name: "all", topic: "all" },
        { name: "now", topic: "now", start: "now" },
        { name: "since", topic: "since", start: row!.at.toISOString() },
      ),
    });
    assert.equal(later.code, 0, later.stderr);
    const topics = Map.groupBy(
      later.stdout.split("\n").filter((line) => line.startsWith('{"id":')),
      (line) => (JSON.parse(line) as { topic: string }).topic,
    );
    assert.deepEqual([...topics].map(([topic, lines]) => [topic, lines.length]).sort(), [
      ["all", 7],
      ["since", 3],
    ]);
  });

  test("D9: log list, seek and reset show what they would do, and do it with --yes", async () => {
    await using it = await stageWithLog();
    await publish(it, 12);
    await once(it.env);
    const seek = (...more: readonly string[]) => ["log", "seek", "shop.log->stdout", ...more];
    assert.match(await told(seek("--to", "beginning"), it.env), /12 events are sent again, 0 are skipped\nNothing was/);
    assert.deepEqual(printed(await once(it.env)), [], "a dry run changes nothing");
    const done = await told(seek("--to", "beginning", "--yes", "--reason", "lost downstream"), it.env);
    assert.match(done, /12 events are sent again.*\ndone/);
    await publish(it, 2);
    assert.equal(printed(await once(it.env)).length, 14);
    await publish(it, 5);
    assert.match(await told(seek("--to", "now", "--yes"), it.env), /0 events are sent again, 5 are skipped/);
    assert.equal(printed(await once(it.env)).length, 0);
    const notes = await it.sql<{ reason: string | null }>(
      "select reason from outbox_relay.audit where action = 'log-seek' order by id",
    );
    assert.deepEqual(
      notes.map(({ reason }) => reason),
      ["lost downstream", null],
    );
    assert.match(
      await told(["log", "reset", "shop.log->stdout"], it.env),
      /its progress and \d+ parked events are deleted.*\nNothing was/,
    );
    await told(["log", "reset", "shop.log->stdout", "--yes"], it.env);
    assert.equal(await told(["log", "list"], it.env), "No logs are read here.\n");
    assert.equal(printed(await once(it.env)).length, 19);
  });

  test("D9: bad input of the log commands is told with the way out", async () => {
    await using it = await stageWithLog();
    await publish(it, 1);
    const port = await freePort();
    await using service = startService(["run"], { ...it.env, PORT: String(port) });
    await until("it is read", async () => (await logs(it.env))[0]?.lanes.every(({ isOwned }) => isOwned));
    const refused = async (args: readonly string[], code: number, why: RegExp, env: Settings = it.env) => {
      const ended = await runCommand(args, env);
      assert.equal(ended.code, code, ended.stderr);
      assert.match(ended.stderr, why);
    };
    await refused(
      ["log", "seek", "shop.log", "--to", "nwo"],
      2,
      /--to is "nwo": write beginning, now.*did you mean now\?/,
    );
    await refused(
      ["log", "seek", "shop.lgo", "--to", "now"],
      4,
      /no pipeline, source or schema named shop\.lgo.*shop\.log->stdout/,
    );
    const busy = /shop\.log->stdout is being read.*outbox-relay pause 'shop\.log->stdout'/;
    await refused(["log", "seek", "shop.log", "--to", "now", "--yes"], 2, busy);
    await refused(["log", "reset", "shop.log", "--yes"], 2, busy);
    await told(["pause", "shop.log"], it.env);
    await told(["log", "seek", "shop.log", "--to", "beginning", "--yes"], it.env);
    await told(["resume", "shop.log"], it.env);
    await until("it is sent again", () => printed({ stdout: service.stdout() }).length === 2);
    await told(["pause", "shop.log"], it.env);
    assert.match(
      await told(["log", "reset", "shop.log", "--yes"], it.env),
      /its progress and \d+ parked events are deleted.*\ndone/,
    );
    await told(["resume", "shop.log"], it.env);
    await until("a reset sends it again too", () => printed({ stdout: service.stdout() }).length === 3);
    const smoked = await told(["smoke", "--table", "shop.log"], it.env);
    const [, id] = /^delivered after \d+ ms: event (\S+)\n$/.exec(smoked) ?? [];
    const arrived = () => printed({ stdout: service.stdout() })[3]?.id;
    await untilEqual("H1 the id that arrives is the one that is told", arrived, id);
    await it.sql(
      "create schema q; create table q.outbox (id int primary key, event_type text, payload text, published boolean)",
    );
    const queue = { OUTBOX_SCHEMAS: "q", OUTBOX_SUBSCRIBERS: "[{name: a}]" };
    await refused(["run", "--once"], 2, /q\.outbox is a queue and cannot have OUTBOX_SUBSCRIBERS/, {
      ...it.env,
      ...queue,
    });
  });

  test("F2 C5: a dead letter of a log is shown, replayed and discarded, and the log goes on meanwhile", async () => {
    await using receiver = await startReceiver();
    await using it = await stageWithLog({ OUTBOX_DESTINATION: receiver.url, MAX_RETRIES: "1", LANES: "2" });
    const states = async () => {
      const { events } = JSON.parse(await told(["events", "list", "-o", "json"], it.env)) as {
        events: { id: string; type: string; state: string }[];
      };
      return events.map(({ state, type }) => `${type} ${state}`);
    };
    receiver.manner = 400;
    await it.sql("select shop.log_publish('bad', 'k', '{}')");
    assert.equal((await once(it.env)).code, 5);
    await it.sql("select shop.log_publish('behind', 'k', '{}'), shop.log_publish('other', 'x', '{}')");
    receiver.manner = 200;
    await once(it.env);
    assert.deepEqual(await states(), ["other delivered", "behind parked", "bad dead"]);
    assert.equal((await logs(it.env))[0]?.parked, 2);
    assert.match(await told(["dlq", "list"], it.env), /bad/);
    assert.equal((await runCommand(["dlq", "replay", "--all", "--yes"], it.env)).code, 5, "no relay is running");
    assert.equal((await once(it.env)).code, 0);
    assert.deepEqual(await states(), ["other delivered", "behind delivered", "bad delivered"]);
    assert.deepEqual((await it.sql("select from outbox_relay.parked")).length, 0);
    receiver.manner = 400;
    await it.sql("select shop.log_publish('worse', 'k', '{}')");
    await once(it.env);
    await told(["dlq", "discard", "--type", "worse", "--reason", "test", "--yes"], it.env);
    assert.deepEqual((await states())[0], "worse discarded");
    assert.deepEqual((await it.sql("select from outbox_relay.parked")).length, 0);
    receiver.manner = 200;
    await it.sql("select shop.log_publish('after', 'k', '{}')");
    assert.equal((await once(it.env)).code, 0);
    assert.deepEqual((await states())[0], "after delivered");
  });

  test("D9 B4: a log gets another number of lanes, and nothing is lost or doubled by it", async () => {
    await using it = await stageWithLog();
    await publish(it, 30);
    assert.equal(printed(await once(it.env)).length, 30);
    await told(["pause", "shop.log"], it.env);
    assert.match(await told(["lanes", "set", "shop.log", "7"], it.env), /7 lanes instead of 4/);
    await publish(it, 30);
    await told(["resume", "shop.log"], it.env);
    assert.equal(printed(await once(it.env)).length, 30);
    const [log] = await logs(it.env);
    assert.deepEqual([log?.lanes.length, log?.lag], [7, 0]);
    await publish(it, 5);
    await told(["pause", "shop.log"], it.env);
    await it.sql("insert into outbox_relay.passed (pipeline, lane, event_id) values ('shop.log->stdout', 0, 'x')");
    const { code, stderr } = await runCommand(["lanes", "set", "shop.log", "2"], it.env);
    assert.equal(code, 2, stderr);
    assert.match(stderr, /are at different positions.*wait until `outbox-relay log list` shows no lag/);
    await told(["resume", "shop.log"], it.env);
    assert.equal(printed(await once(it.env)).length, 5);
  });
});
