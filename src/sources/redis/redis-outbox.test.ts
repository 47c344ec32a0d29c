import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { Cluster, Redis } from "ioredis";
import { type RedisServer, startRedis } from "../../../test/servers/redis.ts";
import { until } from "../../../test/servers/until.ts";
import { isRelayError } from "../../core/errors.ts";
import { rejected } from "../../core/outcome.ts";
import { memoryPublisher } from "../../publishers/memory/memory-publisher.ts";
import { createRelay } from "../../relay/relay.ts";
import { type NewRedisEvent, type RedisOutbox, redisOutbox } from "./redis-outbox.ts";
import { redisSource } from "./redis-source.ts";

const NAME = "shop";

function event(id: string, changes: Partial<NewRedisEvent> = {}): NewRedisEvent {
  return { id, type: "order", key: "k", payload: `"${id}"`, ...changes };
}

describe("the writer's side of a Redis outbox", () => {
  let server: RedisServer;
  let client: Redis;
  let outbox: RedisOutbox;
  before(async () => {
    server = await startRedis();
    client = new Redis(server.url);
    client.on("error", () => {});
    outbox = redisOutbox({ client, name: NAME });
  });
  beforeEach(async () => void (await client.flushall()));
  after(async () => {
    client.disconnect();
    await server[Symbol.asyncDispose]();
  });

  const waiting = () => client.zrange(`{outbox:${NAME}}:pending`, "0", "-1");

  async function drain(): Promise<string[]> {
    const publisher = memoryPublisher();
    const source = redisSource({ url: server.url, name: NAME });
    await using relay = createRelay({ sources: [source], destinations: { memory: publisher }, lanes: 2 });
    await relay.drain();
    return publisher.delivered.map((message) => message.event.id);
  }

  test("D7 C4: an append returns the new ids, and writing an event again changes nothing, also in the same call", async () => {
    assert.deepEqual(await outbox.append([event("1"), event("2"), event("1", { payload: "x" })]), ["1", "2"]);
    assert.deepEqual(await outbox.append(event("2")), []);
    assert.deepEqual(await waiting(), ["1", "2"]);
    assert.deepEqual(await drain(), ["1", "2"]);
    assert.deepEqual(await outbox.append(event("1")), [], "it was delivered");
    assert.deepEqual(await waiting(), []);
  });

  test("D7: events in a MULTI appear with the user's own writes, or not at all", async () => {
    await outbox.appendTo(client.multi().set("order", "1"), event("1")).exec();
    assert.deepEqual([await client.get("order"), await waiting()], ["1", ["1"]]);
    const rival = client.duplicate();
    await client.watch("order");
    await rival.set("order", "2");
    rival.disconnect();
    assert.equal(await outbox.appendTo(client.multi().set("order", "3"), event("2")).exec(), null);
    assert.deepEqual([await client.get("order"), await waiting()], ["2", ["1"]]);
  });

  test("D7: in a script of the user's own a failed append leaves neither the event nor what follows it", async () => {
    const script = `${outbox.lua.text}
      if redis.call('EXISTS', KEYS[2]) == 1 then return redis.error_reply('TAKEN') end
      outbox_append(KEYS[1], ARGV, 2, #ARGV)
      redis.call('SET', KEYS[2], ARGV[1])
      return 1`;
    const place = (key: string, args: readonly (string | Buffer)[]) =>
      client.eval(script, 2, outbox.lua.base, `{outbox:${NAME}}:${key}`, "paid", ...args);
    assert.equal(await place("order", outbox.lua.args(event("1"))), 1);
    await assert.rejects(place("order", outbox.lua.args(event("2"))), /TAKEN/);
    const noType = outbox.lua.args(event("3")).map((value, index) => (index === 1 ? "" : value));
    await assert.rejects(
      place("other", [...outbox.lua.args(event("4")), ...noType]),
      /an event needs an id and a type/,
    );
    for (const at of [2, 5]) {
      const unmarked = outbox.lua.args(event("5")).map((value, index) => (index === at ? "cust-7" : value));
      await assert.rejects(place("other", unmarked), /'=' in front/, "a key without its mark would lose a character");
    }
    assert.equal(await client.exists(`{outbox:${NAME}}:other`), 0);
    assert.deepEqual(await waiting(), ["1"]);
  });

  test("D7: a server that is killed amid writes has every event with its write, or neither", async () => {
    const own = `{outbox:${NAME}}:written`;
    const writer = client.duplicate({ autoResendUnfulfilledCommands: false, maxRetriesPerRequest: 0 });
    writer.on("error", () => {});
    const script = `${outbox.lua.text} outbox_append(KEYS[1], ARGV, 1, #ARGV) return redis.call('INCR', KEYS[2])`;
    let [acknowledged, begun] = [0, 0];
    const writeUntilRefused = async (): Promise<never> => {
      for (;;) {
        begun += 1;
        const one = event(`e${begun}`);
        if (begun % 2 === 0) await outbox.appendTo(writer.multi().incr(own), one).exec();
        else await writer.eval(script, 2, outbox.lua.base, own, ...outbox.lua.args(one));
        acknowledged += 1;
      }
    };
    const writers = Promise.allSettled(Array.from({ length: 20 }, writeUntilRefused));
    await until("some are written", () => acknowledged > 300);
    await server.restart();
    await writers;
    writer.disconnect();
    const events = await client.zcard(`{outbox:${NAME}}:pending`);
    assert.equal(Number(await client.get(own)), events);
    assert.ok(
      events >= acknowledged && acknowledged >= begun - 20,
      `${events} of ${begun}, ${acknowledged} acknowledged`,
    );
  });

  test("D7: with its memory full Redis refuses appends, and the relay still drains the outbox", async () => {
    await outbox.append(
      Array.from({ length: 500 }, (_, number) => event(`e${number}`, { payload: "x".repeat(1_000) })),
    );
    await client.config("SET", "maxmemory", "1mb");
    try {
      const refused = outbox.append(event("late"));
      await assert.rejects(refused, (error) => isRelayError(error, "DATABASE_REFUSED") && /OOM/.test(error.message));
      assert.equal((await drain()).length, 500);
    } finally {
      await client.config("SET", "maxmemory", "0");
    }
    assert.deepEqual(await waiting(), []);
  });

  test("a server that may evict events is refused, with the way out", async () => {
    await client.config("SET", "maxmemory-policy", "allkeys-lru");
    const source = redisSource({ client, name: NAME });
    try {
      const spec = { name: "p", types: null, lanes: 1, attemptsMax: 3, payloadBytesMax: 1_000, headersMax: 10 };
      await assert.rejects(source.pipeline(spec).prepare(), /maxmemory-policy is allkeys-lru. Set it to noeviction/);
    } finally {
      await client.config("SET", "maxmemory-policy", "noeviction");
      await source.close();
    }
  });

  test("what is no event is refused before anything is sent", () => {
    const wrong: readonly [Partial<Record<keyof NewRedisEvent, unknown>>, RegExp][] = [
      [{ id: "" }, /has no id/],
      [{ type: "" }, /event 1 has no type/],
      [{ payload: { a: 1 } }, /neither text nor a Buffer/],
      [{ headers: { n: 1 } }, /header n of event 1 is not a string/],
    ];
    for (const [changes, message] of wrong) {
      const one = { ...event("1"), ...changes } as NewRedisEvent;
      assert.throws(() => outbox.lua.args(one), message);
    }
    assert.throws(
      () => outbox.lua.args(Array(10_001).fill(event("1"))),
      /10001 events in one append; the limit is 10000/,
    );
  });

  test("A10 an event that failed is a dead letter, and after a replay it is tried again", async () => {
    await outbox.append([event("1"), event("2")]);
    const publisher = memoryPublisher();
    const source = redisSource({ client, name: NAME });
    publisher.failNext(1, rejected("not today"));
    await using relay = createRelay({
      sources: [source],
      destinations: { memory: publisher },
      timing: { reviewMs: 50 },
    });
    await relay.start();
    await until("it is dead", async () => (await outbox.deadLetters()).length === 1);
    const [letter] = await outbox.deadLetters();
    assert.deepEqual([letter?.id, letter?.key, letter?.attempts, letter?.parks], ["1", "k", 1, true]);
    assert.match(letter?.errors[0]?.reason ?? "", /not today/);
    assert.equal(await outbox.replay("2"), false, "it is parked, not dead");
    assert.equal(await outbox.replay("1"), true);
    await until("both are delivered", () => publisher.delivered.length === 2);
    assert.deepEqual(
      publisher.delivered.map((message) => message.event.id),
      ["1", "2"],
    );
    assert.deepEqual(await outbox.deadLetters(), []);
  });
});

test("D7: a cluster takes every script, because all keys of an outbox are on one node", async () => {
  await using server = await startRedis(["--cluster-enabled", "yes", "--cluster-announce-ip", "127.0.0.1"]);
  const node = new Redis({ port: server.port, host: "127.0.0.1" });
  await node.call("CLUSTER", "ADDSLOTSRANGE", "0", "16383");
  await until("the cluster is up", async () => String(await node.call("CLUSTER", "INFO")).includes("cluster_state:ok"));
  node.disconnect();
  const cluster = new Cluster([{ host: "127.0.0.1", port: server.port }]);
  const outbox = redisOutbox({ client: cluster, name: NAME });
  await outbox.append(Array.from({ length: 50 }, (_, number) => event(`e${number}`, { key: `k${number % 7}` })));
  await outbox.appendTo(cluster.multi().set(`{outbox:${NAME}}:own`, "1"), event("last")).exec();
  const publisher = memoryPublisher();
  const source = redisSource({ client: cluster, name: NAME });
  await using relay = createRelay({ sources: [source], destinations: { memory: publisher } });
  await relay.drain();
  assert.equal(publisher.delivered.length, 51);
  cluster.disconnect();
});
