import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Redis } from "ioredis";
import { type RedisServer, startRedis } from "../../../test/servers/redis.ts";
import { startTcpProxy } from "../../../test/servers/tcp-proxy.ts";
import { until } from "../../../test/servers/until.ts";
import { isRelayError } from "../../core/errors.ts";
import type { Publisher } from "../../ports/publisher.ts";
import { idsIn, kinds, message, publishAll, readEntries, reasonIn } from "./redis-fixture.test.ts";
import { type RedisPublisherOptions, redisPublisher } from "./redis-publisher.ts";

let server: RedisServer;
let redis: Redis;
const opened: Publisher[] = [];

before(async () => {
  server = await startRedis(["--proto-max-bulk-len", "1mb"]);
  redis = new Redis(server.url);
});

after(async () => {
  for (const publisher of opened) await publisher.close();
  redis.disconnect();
  await server[Symbol.asyncDispose]();
});

function open(options: Partial<RedisPublisherOptions> = {}): Publisher {
  const publisher = redisPublisher({ hosts: [`127.0.0.1:${server.port}`], ...options });
  opened.push(publisher);
  return publisher;
}

test("G2 B6 an entry has the fields id, payload, partition_key and one for each header", async () => {
  const payload = Buffer.from([0, 255, 10]);
  await publishAll(open(), [message("a1", "fields", { payload, headers: { tenant: "t" } }), message("-1", "fields")]);
  const entries = (await readEntries(redis, "fields")).map((fields) =>
    [...fields].map(([name, value]) => `${name}=${value.toString("latin1")}`),
  );
  assert.deepEqual(entries, [
    ["id=a1", "payload=\0\xff\n", "partition_key=a", "h:tenant=t", "h:event-id=a1"],
    ["id=-1", "payload=-1", "h:event-id=-1"],
  ]);
});

test("D8 an id that is sent again is dropped while it is remembered, and only then", async () => {
  const publisher = open({ dedupeMs: 300 });
  const batch = [message("a1", "window"), message("a2", "window"), message("a1", "window")];
  const twice = await Promise.all([publishAll(publisher, batch), publishAll(publisher, batch)]);
  assert.equal(twice.map(kinds).join(" "), Array(6).fill("delivered").join(" "));
  assert.equal(await idsIn(redis, "window"), "a1 a2");
  await until("the ids are forgotten", async () => (await redis.keys("outbox-relay:*{window}*")).length === 0);
  await publishAll(publisher, batch.slice(0, 1));
  assert.equal(await idsIn(redis, "window"), "a1 a2 a1");
});

test("D3 events of two tables that count alike are both delivered", async () => {
  await publishAll(open(), [message("1", "alike"), message("1", "alike", { payload: Buffer.from("other") })]);
  assert.equal(await idsIn(redis, "alike"), "1 1");
});

test("F2 F4 a key that is no stream stops its own events and the later ones of their keys, and nothing else", async () => {
  await redis.set("taken", "by somebody");
  const batch = [message("a1", "taken"), message("a2", "free"), message("b1", "free"), message("-1", "taken")];
  const outcomes = await publishAll(open(), batch);
  assert.equal(kinds(outcomes), "topic skipped delivered topic");
  assert.match(reasonIn(outcomes[0]), /"taken": WRONGTYPE.*not a stream/);
  await redis.del("taken");
  assert.equal(kinds(await publishAll(open(), batch)), "delivered delivered delivered delivered");
  assert.equal(await idsIn(redis, "taken"), "a1 -1");
  assert.equal(await idsIn(redis, "free"), "b1 a2");
});

test("A4 a full Redis is the destination's failure, and no id is remembered without its entry", async () => {
  const publisher = open();
  const batch = [message("a1", "full"), message("a2", "full")];
  await redis.config("SET", "maxmemory", "1");
  const outcomes = await publishAll(publisher, batch);
  await redis.config("SET", "maxmemory", "0");
  assert.equal(kinds(outcomes), "destination skipped");
  assert.match(reasonIn(outcomes[0]), /OOM.*maxmemory/);
  assert.equal(kinds(await publishAll(publisher, batch)), "delivered delivered");
  assert.equal(await idsIn(redis, "full"), "a1 a2");
});

test("a server that forgot the script gets it again", async () => {
  const publisher = open();
  await publishAll(publisher, [message("a1", "flush")]);
  await redis.script("FLUSH");
  assert.equal(kinds(await publishAll(publisher, [message("a2", "flush")])), "delivered");
  assert.equal(await idsIn(redis, "flush"), "a1 a2");
});

test("a stream is trimmed to about maxlen, and the newest stay", async () => {
  const batch = Array.from({ length: 1_000 }, (_, at) => message(`a${at}`, "short"));
  await publishAll(open({ maxlen: 100 }), batch);
  const ids = (await idsIn(redis, "short")).split(" ");
  assert.ok(ids.length >= 100 && ids.length < 300, `${ids.length} entries`);
  assert.equal(ids.at(-1), "a999");
});

test("A20 missing rights are reported with what they concern, and no reason shows the password", async () => {
  await redis.call("ACL", "SETUSER", "narrow", "on", ">canary", "+@all", "~mine", "~outbox-relay:*");
  await redis.call("ACL", "SETUSER", "mute", "on", ">canary", "+@all", "-evalsha", "-eval", "~*");
  const as = (username: string, password = "canary") => open({ username, password });
  const narrow = await publishAll(as("narrow"), [message("a1", "mine"), message("b1", "theirs")]);
  assert.equal(kinds(narrow), "delivered topic");
  const mute = await publishAll(as("mute"), [message("a2", "mine")]);
  const stranger = await publishAll(as("narrow", "wrong-canary"), [message("a2", "mine")]);
  assert.equal(kinds([...mute, ...stranger]), "destination destination");
  assert.match(reasonIn(stranger[0]), /WRONGPASS.*check user and password/);
  for (const outcome of [...narrow, ...mute, ...stranger]) assert.doesNotMatch(reasonIn(outcome), /canary/);
});

test("an event that is too large for the server does not affect others", async () => {
  const publisher = open();
  const large = message("a1", "large", { payload: Buffer.alloc(3_000_000) });
  const sent = publishAll(publisher, [large]).then(
    kinds,
    (error) => isRelayError(error, "PUBLISH_UNKNOWN") && "unknown",
  );
  // Whether the refusal is read before the connection is reset is up to the network.
  assert.match(String(await sent), /^(?:rejected|unknown)$/);
  assert.equal(kinds(await publishAll(publisher, [message("b1", "large")])), "delivered");
  assert.equal(await idsIn(redis, "large"), "b1");
});

test("A4 a replica refuses as a destination; replicas can be awaited, and their absence doubles nothing", async () => {
  await using replica = await startRedis(["--replicaof", `127.0.0.1 ${server.port}`]);
  const own = new Redis(replica.url);
  own.on("error", () => {});
  await until("the replica is in step", async () => /master_link_status:up/.test(await own.info("replication")));
  const refused = await publishAll(open({ hosts: [`127.0.0.1:${replica.port}`] }), [message("a1", "kept")]);
  assert.equal(kinds(refused), "destination");
  assert.match(reasonIn(refused[0]), /READONLY.*primary/);
  const publisher = open({ replicas: 1, requestTimeoutMs: 2_500 });
  assert.equal(kinds(await publishAll(publisher, [message("a1", "kept")])), "delivered");
  assert.equal(await idsIn(own, "kept"), "a1");
  await replica.pause();
  const alone = await publishAll(publisher, [message("a2", "kept"), message("a3", "kept")]);
  assert.equal(kinds(alone), "destination skipped");
  assert.match(reasonIn(alone[0]), /0 of 1 replicas/);
  const again = await publishAll(publisher, [message("a2", "kept")]);
  assert.equal(kinds(again), "destination", "a duplicate that no replica has is not delivered either");
  replica.resume();
  assert.equal(
    kinds(await publishAll(publisher, [message("a2", "kept"), message("a3", "kept")])),
    "delivered delivered",
  );
  assert.equal(await idsIn(own, "kept"), "a1 a2 a3");
  own.disconnect();
});

test("A4 F2 what was given up may arrive late: nothing is doubled and no order is changed", async () => {
  await using proxy = await startTcpProxy(server.port);
  const zombie = open({ hosts: [`127.0.0.1:${proxy.port}`], requestTimeoutMs: 300 });
  await publishAll(zombie, [message("a1", "late")]);
  proxy.blackhole(true);
  const batch = [message("a2", "late"), message("a3", "late")];
  await assert.rejects(publishAll(zombie, batch), (error) => isRelayError(error, "PUBLISH_UNKNOWN"));
  const successor = open();
  await publishAll(successor, batch);
  await publishAll(successor, [message("a4", "late")]);
  proxy.blackhole(false);
  assert.equal(kinds(await publishAll(zombie, [message("b1", "late")])), "delivered");
  assert.equal(await idsIn(redis, "late"), "a1 a2 a3 a4 b1");
});

test("A4 a server that refuses, resets or does not answer is reported as such, and the next publish succeeds", async () => {
  await using proxy = await startTcpProxy(server.port);
  const publisher = open({ hosts: [`127.0.0.1:${proxy.port}`], requestTimeoutMs: 500 });
  proxy.refuse(true);
  assert.equal(kinds(await publishAll(publisher, [message("a1", "network")])), "destination");
  proxy.refuse(false);
  proxy.blackhole(true);
  await assert.rejects(publishAll(publisher, [message("a1", "network")]), /did not answer within 500 ms/);
  proxy.blackhole(false);
  assert.equal(kinds(await publishAll(publisher, [message("a1", "network")])), "delivered");
  proxy.latencyMs = 200;
  const cut = publishAll(publisher, [message("a2", "network")]);
  await new Promise((resolve) => setImmediate(resolve));
  proxy.cut();
  await assert.rejects(cut, /sent, but no response/);
  proxy.latencyMs = 0;
  assert.equal(kinds(await publishAll(publisher, [message("a2", "network")])), "delivered");
  assert.equal(await idsIn(redis, "network"), "a1 a2");
});

test("A17 an examination names a wrong password as a publish does, and a server that would delete events", async () => {
  await redis.call("ACL", "SETUSER", "relay", "on", ">right", "~*", "+@all", "-info");
  const signal = AbortSignal.timeout(30_000);
  const stranger = open({ username: "relay", password: "wrong" });
  const [refused] = await publishAll(stranger, [message("a1", "nowhere")]);
  assert.match(reasonIn(refused), /WRONGPASS.*check user and password/);
  assert.deepEqual(await stranger.examine?.(signal), [{ severity: "error", reason: reasonIn(refused) }]);
  const mayNotAsk = open({ username: "relay", password: "right" });
  assert.deepEqual(await mayNotAsk.examine?.(signal), []);
  const publisher = open();
  for (const [policy, severity] of [
    ["allkeys-lru", "error"],
    ["volatile-ttl", "warning"],
  ]) {
    await redis.config("SET", "maxmemory-policy", policy!);
    const [found, ...others] = (await publisher.examine?.(signal)) ?? [];
    assert.deepEqual([found?.severity, others], [severity, []]);
    assert.match(found?.reason ?? "", new RegExp(`maxmemory-policy is ${policy}: .*set maxmemory-policy noeviction`));
  }
  await redis.config("SET", "maxmemory-policy", "noeviction");
  assert.deepEqual(await publisher.examine?.(signal), []);
});
