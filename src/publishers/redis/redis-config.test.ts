import assert from "node:assert/strict";
import { test } from "node:test";
import { isRelayError } from "../../core/errors.ts";
import { describeHosts, redisSettings } from "./redis-config.ts";
import { faultOf } from "./redis-delivery.ts";
import { connectionReason, outcomeOf } from "./redis-errors.ts";
import { kinds, message, reasonIn } from "./redis-fixture.test.ts";
import { type Item, planWave } from "./redis-plan.ts";
import { markerStem } from "./redis-script.ts";

const hosts = ["localhost:6379"];

test("G2 by default ids are remembered for ten minutes and nothing is trimmed", () => {
  const settings = redisSettings({ hosts: ["[::1]:6380"] });
  assert.deepEqual([settings.dedupeMs, settings.maxlen, settings.prefix], [600_000, 0, "outbox-relay:"]);
  assert.equal(describeHosts(settings), "[::1]:6380");
  assert.ok(settings.connectTimeoutMs < settings.requestTimeoutMs && settings.requestTimeoutMs < 5_000);
});

test("options that cannot work are refused by name", () => {
  const wrong = [
    [{ hosts: [] }, /hosts/],
    [{ hosts: ["nowhere"] }, /hosts/],
    [{ hosts: ["a:1", "b:2"] }, /cluster/],
    [{ hosts, database: -1 }, /database/],
    [{ hosts, replicas: 0.5 }, /replicas/],
    [{ hosts, prefix: "a{b}" }, /prefix/],
    [{ hosts, maxlen: 0 }, /maxlen/],
    [{ hosts, dedupeMs: -1 }, /dedupeMs/],
    [{ hosts, username: "u" }, /password/],
  ] as const;
  for (const [options, text] of wrong) {
    assert.throws(
      () => redisSettings(options),
      (error) => isRelayError(error, "CONFIG_INVALID") && text.test(error.message),
    );
  }
});

test("what Redis answers is the topic's or the destination's failure, never the event's", () => {
  const scopes: Record<string, string> = {
    "WRONGTYPE Operation against a key holding the wrong kind of value": "topic",
    "NOPERM this user has no permissions to access one of the keys used as arguments": "topic",
    "ERR The user executing the script can't access at least one of the keys mentioned": "topic",
    "ERR The stream has exhausted the last possible ID, unable to add more items": "topic",
    "NOPERM this user has no permissions to run the 'evalsha' command": "destination",
    "ERR The user executing the script can't run this command or subcommand": "destination",
    "OOM command not allowed when used memory > 'maxmemory'.": "destination",
    "-READONLY You can't write against a read only replica.": "destination",
    "LOADING Redis is loading the dataset in memory": "destination",
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.": "destination",
    "NOAUTH Authentication required.": "destination",
    "MOVED 3999 127.0.0.1:6381": "destination",
    "MISCONF Redis is configured to save RDB snapshots": "destination",
  };
  for (const [said, scope] of Object.entries(scopes)) {
    const outcome = outcomeOf(said, "orders");
    assert.equal(kinds([outcome]), scope, said);
    assert.match(reasonIn(outcome), /stream "orders"/);
  }
  assert.equal(outcomeOf("ERR Protocol error: invalid bulk length", "orders").kind, "rejected");
});

test("A20 the reason of a lost connection names the address and no password", () => {
  const settings = redisSettings({ hosts, password: "canary" });
  const refused = new Error("the login with canary failed");
  const reason = connectionReason(settings, new AggregateError([refused, new Error("Connection is closed.")]));
  assert.match(reason, /localhost:6379/);
  assert.doesNotMatch(reason, /canary/);
  assert.match(connectionReason(settings, new Error("Connection is closed.")), /rediss/);
});

test("markers are beside their stream, and no two streams or ids share one", () => {
  const streams = ["x", "{x}", "{x}b", "a{x}b", "{x}b:1", "{", "a}b", "{}", "{}x"];
  const ids = ["1", "b:1", ":1", "}:1"];
  const keys = streams.flatMap((stream) => ids.map((id) => markerStem("p:", stream) + id));
  assert.equal(new Set(keys).size, keys.length);
  for (const stream of ["x", "{x}", "{x}b", "a{x}b", "{x}b:1", "{"]) {
    assert.equal(hashTag(`${markerStem("p:", stream)}any{thing}`), hashTag(stream), stream);
  }
});

/** What the specification of Redis Cluster hashes of a key. */
function hashTag(key: string): string {
  const open = key.indexOf("{");
  const close = open < 0 ? -1 : key.indexOf("}", open + 1);
  return close > open + 1 ? key.slice(open + 1, close) : key;
}

test("A3 a key's event for another stream waits until the earlier one has its answer", () => {
  const items: Item[] = ["a1:x", "a2:y", "a3:x", "b1:y", "-1:x"].map((text, index) => {
    const [id, topic] = text.split(":") as [string, string];
    return { index, message: message(id, topic), bytes: 10 };
  });
  const shown = (list: readonly Item[]) => list.map(({ message: { event } }) => event.id).join(" ");
  const first = planWave(items, new Map());
  assert.deepEqual(
    first.calls.map((call) => shown(call.items)),
    ["a1 -1", "b1"],
  );
  assert.equal(shown(first.later), "a2 a3");
  const afterFailure = planWave(first.later, new Map([["a", 0]]));
  assert.deepEqual([afterFailure.calls.length, shown(afterFailure.skipped)], [0, "a2 a3"]);
});

test("a large event goes alone, and a smaller one of its stream does not overtake it", () => {
  const bytes = [10, 2_000_000, 10];
  const items = bytes.map((size, index): Item => ({ index, message: message(`a${index}`, "x"), bytes: size }));
  const waves: string[] = [];
  for (let rest: readonly Item[] = items; rest.length > 0; ) {
    const { calls, later } = planWave(rest, new Map());
    waves.push(calls.map((call) => call.items.map(({ index }) => index).join("")).join(","));
    rest = later;
  }
  assert.deepEqual(waves, ["0", "1", "2"]);
});

test("B6 what Redis cannot carry unchanged is refused", () => {
  assert.equal(faultOf(message("a1", "orders")), null);
  assert.match(faultOf(message("a1", "")) ?? "", /empty/);
  assert.match(faultOf(message("a1", "x\ud800")) ?? "", /half a character/);
  assert.match(faultOf(message("a1", "x", { headers: { h: "\udc00" } })) ?? "", /"h"/);
  const many = Object.fromEntries(Array.from({ length: 1_001 }, (_, at) => [`h${at}`, ""]));
  assert.match(faultOf(message("a1", "x", { headers: many })) ?? "", /1000 are allowed/);
});
