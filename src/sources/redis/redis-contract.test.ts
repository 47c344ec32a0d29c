import { after, before, describe, test } from "node:test";
import { Redis } from "ioredis";
import { type RedisServer, startRedis } from "../../../test/servers/redis.ts";
import { applicableCases } from "../../testing/contracts/contract-case.ts";
import { membershipContract } from "../../testing/contracts/membership-contract.ts";
import { queueStoreContract } from "../../testing/contracts/queue-store-contract.ts";
import type { NewEvent, StoreHarness, StoreSubject } from "../../testing/contracts/store-subject.ts";
import { removeScript } from "./lua/operations.ts";
import { redisOutbox } from "./redis-outbox.ts";
import { redisSource } from "./redis-source.ts";

describe("Redis source", () => {
  let server: RedisServer;
  let admin: Redis;
  before(async () => {
    server = await startRedis();
    admin = new Redis(server.url);
    admin.on("error", () => {});
  });
  after(async () => {
    admin.disconnect();
    await server[Symbol.asyncDispose]();
  });

  const harness: StoreHarness = {
    capabilities: {
      durableClaims: false,
      ownStatus: true,
      payloads: "bytes",
      headers: true,
      prunes: true,
      restart: true,
    },
    open: async () => {
      await admin.flushall();
      return subjectOf(server, admin);
    },
  };
  for (const check of applicableCases([...queueStoreContract, ...membershipContract], harness)) {
    test(`Redis source: ${check.rule}`, () => check.run(harness));
  }
});

const NAME = "contract é:1";
const BASE = `{outbox:${NAME.replace(" ", "-")}}`;

function subjectOf(server: RedisServer, admin: Redis): StoreSubject {
  const place = { url: server.url, name: NAME.replace(" ", "-") };
  const source = redisSource(place);
  const outbox = redisOutbox({ ...place, url: server.url });
  return {
    source,
    store: (spec) => source.pipeline(spec),
    insert: async (events: readonly NewEvent[]) => {
      for (const event of events) await outbox.append(event);
    },
    insertInOneTransaction: async (statements) => {
      const multi = admin.multi();
      for (const events of statements) outbox.appendTo(multi, events);
      await multi.exec();
    },
    pendingIds: () => admin.zrange(`${BASE}:pending`, "0", "-1"),
    deliveredIds: () => admin.zrange(`${BASE}:delivered`, "0", "-1"),
    deadLetters: async () =>
      (await outbox.deadLetters()).map(({ attempts, errors, id, payload }) => ({
        id,
        payload,
        reason: errors.at(-1)?.reason ?? "",
        failures: attempts,
        firstFailedAt: new Date(errors[0]?.at ?? ""),
        lastFailedAt: new Date(errors.at(-1)?.at ?? ""),
        errors: errors.map(({ reason }) => reason),
      })),
    deleteRow: async (id) => void (await outbox.remove(id)),
    markByHand: async (id) => void (await admin.eval(removeScript.text, 1, BASE, "", id, "1")),
    resetByHand: async (id) => void (await outbox.replay(id)),
    pause: async (pipeline, pause) => void (await outbox.pause(pipeline, pause)),
    expireInstance: (id) => expire(admin, id, -1_000),
    expireImpossiblyFar: (id) => expire(admin, id, 10 * 365 * 86_400_000),
    restart: () => server.restart(),
    close: async () => {
      await source.close();
      await outbox.close();
    },
  };
}

const EXPIRE = `
local row = cmsgpack.unpack(redis.call('HGET', KEYS[1], ARGV[1]))
row.until_ms = redis.call('TIME')[1] * 1000 + ARGV[2]
redis.call('HSET', KEYS[1], ARGV[1], cmsgpack.pack(row))`;

async function expire(admin: Redis, id: string, byMs: number): Promise<void> {
  await admin.eval(EXPIRE, 1, `${BASE}:instances`, id, byMs);
}
