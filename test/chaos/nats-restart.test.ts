import assert from "node:assert/strict";
import { test } from "node:test";
import { describeVerdict } from "../e2e/checker.ts";
import { createStream, readStream, startNats } from "../servers/nats.ts";
import { proveBrokerRestart, RESTART_TYPE } from "./broker-restart.ts";

test("A2 A3 A4 NATS killed and restarted amid 3,000 events of 200 keys: none lost, none doubled, all in order", async () => {
  await using nats = await startNats();
  await createStream(nats.port, "ORDERS", { subjects: ["order.>"] });
  const verdict = await proveBrokerRestart({
    destination: `${nats.url}?stream=ORDERS`,
    kill: () => nats.kill(),
    restart: () => nats.restart(),
    arrived: async () =>
      (await readStream(nats.port, "ORDERS"))
        .filter(({ subject }) => subject === RESTART_TYPE)
        .map(({ headers, payload }) => ({
          id: headers["event-id"] ?? "",
          key: headers["partition-key"] ?? null,
          payload,
        })),
  });
  const { corrupt, duplicates, inversions, lost, unmarked } = verdict;
  assert.deepEqual(
    { corrupt, inversions, lost, unmarked, duplicates },
    { corrupt: [], inversions: [], lost: [], unmarked: [], duplicates: 0 },
    describeVerdict(verdict),
  );
});
