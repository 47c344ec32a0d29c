import assert from "node:assert/strict";
import { test } from "node:test";
import { Queue } from "bullmq";
import { describeVerdict } from "../e2e/checker.ts";
import { startRedis } from "../servers/redis.ts";
import { proveBrokerRestart, RESTART_TYPE } from "./broker-restart.ts";

test("A3 A4 B6 BullMQ's Redis killed and restarted amid 3,000 events of 200 keys: none lost or doubled, all in order", async () => {
  await using server = await startRedis();
  const verdict = await proveBrokerRestart({
    destination: `bullmq+redis://127.0.0.1:${server.port}/0`,
    kill: () => server.kill(),
    restart: () => server.restart(),
    arrived: async () => {
      const queue = new Queue(RESTART_TYPE, { connection: { host: "127.0.0.1", port: server.port } });
      const jobs = await queue.getJobs(["waiting"], 0, -1, true);
      await queue.close();
      return jobs.map(({ data: { encoding, id, key, payload } }) => {
        return { id, key, payload: Buffer.from(payload, encoding) };
      });
    },
  });
  const { corrupt, duplicates, inversions, lost, unmarked } = verdict;
  assert.deepEqual(
    { corrupt, inversions, lost, unmarked, duplicates },
    { corrupt: [], inversions: [], lost: [], unmarked: [], duplicates: 0 },
    describeVerdict(verdict),
  );
});
