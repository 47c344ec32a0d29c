import assert from "node:assert/strict";
import { test } from "node:test";
import { Redis } from "ioredis";
import { describeVerdict } from "../e2e/checker.ts";
import { readEvents } from "../e2e/redis-events.ts";
import { startRedis } from "../servers/redis.ts";
import { proveBrokerRestart, RESTART_TYPE } from "./broker-restart.ts";

test("A3 A4 B6 Redis killed and restarted amid 3,000 events of 200 keys: none lost, none doubled, all in order", async () => {
  await using server = await startRedis();
  const verdict = await proveBrokerRestart({
    destination: server.url,
    kill: () => server.kill(),
    restart: () => server.restart(),
    arrived: async () => {
      const redis = new Redis(server.url);
      const events = await readEvents(redis, RESTART_TYPE);
      redis.disconnect();
      return events;
    },
  });
  const { corrupt, duplicates, inversions, lost, unmarked } = verdict;
  assert.deepEqual(
    { corrupt, inversions, lost, unmarked, duplicates },
    { corrupt: [], inversions: [], lost: [], unmarked: [], duplicates: 0 },
    describeVerdict(verdict),
  );
});
