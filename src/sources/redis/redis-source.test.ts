import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, beforeEach, describe, test } from "node:test";
import { Redis } from "ioredis";
import { type RedisServer, startRedis } from "../../../test/servers/redis.ts";
import { until } from "../../../test/servers/until.ts";
import { type ErrorCode, isRelayError } from "../../core/errors.ts";
import type { PipelineSpec, QueueStore, Run, Takeover } from "../../ports/queue-store.ts";
import { type NewRedisEvent, redisOutbox } from "./redis-outbox.ts";
import { redisSource } from "./redis-source.ts";

const NAME = "shop";
const SPEC: PipelineSpec = {
  name: "p",
  types: null,
  lanes: 1,
  attemptsMax: 3,
  payloadBytesMax: 100_000,
  headersMax: 10,
};
const LATER = { kind: "retry", delayMs: 600_000 } as const;
const NOTHING = { ledger: "none", delivered: [], failed: [], handedBack: [], releasedHolds: [], suspects: [] } as const;

function event(id: string, key: string | null, type = "t"): NewRedisEvent {
  return { id, type, key, payload: id };
}

function many(count: number, prefix: string): NewRedisEvent[] {
  return Array.from({ length: count }, (_, number) => event(`${prefix}${number}`, `${prefix}-${number}`));
}

const hasCode = (code: ErrorCode) => (error: unknown) => isRelayError(error, code);

describe("a Redis source", () => {
  let server: RedisServer;
  let client: Redis;
  before(async () => {
    server = await startRedis();
    client = new Redis(server.url);
    client.on("error", () => {});
  });
  beforeEach(async () => void (await client.flushall()));
  after(async () => {
    client.disconnect();
    await server[Symbol.asyncDispose]();
  });

  /** A source whose only lane is owned. */
  async function open(): Promise<AsyncDisposable & { readonly store: QueueStore; readonly takeover: Takeover }> {
    const source = redisSource({ url: server.url, name: NAME, commandTimeoutMs: 500 });
    const store = source.pipeline(SPEC);
    await store.prepare();
    const id = randomUUID();
    await source.membership.join({ id, name: "test", leaseMs: 60_000, pipelines: ["p"] });
    const [takeover] = await store.takeOver(id, [0]);
    assert.ok(takeover !== undefined);
    return { store, takeover, [Symbol.asyncDispose]: () => source.close() };
  }

  async function rest(run: Run): Promise<string[]> {
    const ids: string[] = [];
    for (let page = await run.next(700, 1e9); page.length > 0; page = await run.next(700, 1e9)) {
      ids.push(...page.map(({ id }) => id));
    }
    return ids;
  }

  const append = (...events: NewRedisEvent[]) => redisOutbox({ client, name: NAME }).append(events);

  test("A3: a key that was parked when a run passed it is not shown by that run any more, though its hold is gone", async () => {
    await using owner = await open();
    const { store } = owner;
    const { grant } = owner.takeover;
    await append(event("a1", "a"), ...many(1_200, "f"), event("a2", "a"));
    const batches = { grant, previousBatch: 0n, batch: 0n };
    const failure = { id: "a1", key: "a", reason: "no", attempts: 1, next: LATER };
    await store.settle({ ...NOTHING, ...batches, failed: [failure] });
    const run = await store.begin({ grants: [grant], exceptKeys: [], exceptTypes: [] });
    assert.equal((await run.next(500, 1e9)).length, 500);
    await store.settle({ ...NOTHING, ...batches, releasedHolds: ["a1"] });
    const shown = await rest(run);
    assert.equal(shown.length, 700);
    assert.ok(!shown.includes("a2"), "it would overtake a1");
    const next = await rest(await store.begin({ grants: [grant], exceptKeys: [], exceptTypes: [] }));
    assert.deepEqual([next[0], next.at(-1)], ["a1", "a2"]);
  });

  test("a run does not continue with another server process, which may have lost its last writes", async () => {
    await using owner = await open();
    const { store } = owner;
    await append(...many(1_500, "f"));
    const run = await store.begin({ grants: [owner.takeover.grant], exceptKeys: [], exceptTypes: [] });
    await run.next(1_000, 1e9);
    await server.restart();
    const goOn = async (): Promise<void> => {
      for (;;) await run.next(1_000, 1e9).then((page) => assert.equal(page.length, 0));
    };
    await assert.rejects(goOn(), hasCode("DATABASE_UNREACHABLE"));
    await assert.rejects(run.next(1_000, 1e9), /another server process answers now|failed/);
  });

  test("what is written to a type that is left out blocks its key also when it came after the first look", async () => {
    await using owner = await open();
    const { store } = owner;
    const request = { grants: [owner.takeover.grant], exceptKeys: [], exceptTypes: ["closed"] };
    await append(event("a1", "a", "closed"), event("a2", "a"), event("b1", "b"), event("c1", "c"));
    assert.deepEqual(await rest(await store.begin(request)), ["b1", "c1"]);
    await append(event("b2", "b", "closed"));
    assert.deepEqual(await rest(await store.begin(request)), ["c1"]);
    const all = await rest(await store.begin({ ...request, exceptTypes: [] }));
    assert.deepEqual(all, ["a1", "a2", "b1", "c1", "b2"]);
  });

  test("A11: beyond 10,000 waiting events their number is an estimate, and cheap", async () => {
    await using owner = await open();
    await append(...many(10_000, "f"));
    await append(...many(2_000, "g"));
    const { isEstimate, pending } = await owner.store.backlog();
    assert.deepEqual([isEstimate, pending], [true, 12_000]);
  });

  test("B4: a settle that a stalled server does not answer has an unknown effect, and its repetition is fenced or counts", async () => {
    await using owner = await open();
    const { store } = owner;
    const { grant } = owner.takeover;
    await append(event("a1", "a"));
    const settlement = { ...NOTHING, grant, previousBatch: 0n, batch: 1n, delivered: ["a1"] };
    await server.pause();
    try {
      await assert.rejects(store.settle(settlement), hasCode("DATABASE_UNREACHABLE"));
    } finally {
      server.resume();
    }
    const missing = await until("the connection is there again", () =>
      store.settle(settlement).then(
        (result) => result.missing,
        (error) => (isRelayError(error, "FENCED") ? ["fenced"] : undefined),
      ),
    );
    assert.ok(missing.length === 0 || missing[0] === "fenced", `missing ${missing}`);
    assert.deepEqual(await client.zrange(`{outbox:${NAME}}:delivered`, "0", "-1"), ["a1"]);
  });

  test("a server that is not there, or wants another password, is reported without the password", async () => {
    await client.config("SET", "requirepass", "open sesame");
    try {
      const wrong = redisSource({ url: server.url.replace("//", "//:swordfish@"), name: NAME });
      const none = redisSource({ url: "redis://:swordfish@127.0.0.1:1", name: NAME });
      for (const [source, message] of [
        [wrong, /WRONGPASS.*DATABASE_REFUSED/],
        [none, /ECONNREFUSED.*DATABASE_UNREACHABLE/],
      ] as const) {
        await assert.rejects(source.pipeline(SPEC).prepare(), (error: Error) => {
          assert.match(error.message, message);
          assert.ok(!error.message.includes("swordfish"));
          return true;
        });
        await source.close();
      }
    } finally {
      await client.config("SET", "requirepass", "");
    }
  });
});

test("settings that make no sense are refused by name", () => {
  const url = "redis://127.0.0.1:6379";
  const wrong = [
    [{ url, name: "" }, /name is ""/],
    [{ url, name: "a{b" }, /no brace/],
    [{ name: "a" }, /needs exactly one of url and client/],
    [{ url: "http://x", name: "a" }, /redis:\/\/ or rediss:\/\//],
    [{ url, name: "a", commandTimeoutMs: 0 }, /commandTimeoutMs is 0/],
    [{ url, name: "a", deliveredIdsMs: -1 }, /deliveredIdsMs is -1/],
  ] as const;
  for (const [options, message] of wrong) assert.throws(() => redisSource(options), message);
});
