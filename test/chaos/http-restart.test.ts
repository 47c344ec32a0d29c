import assert from "node:assert/strict";
import { test } from "node:test";
import { describeVerdict } from "../e2e/checker.ts";
import { startHttpReceiver } from "../servers/http-receiver.ts";
import { proveBrokerRestart } from "./broker-restart.ts";

/** Requests under way at a time: what a kill can leave without an answer, and nothing else can be sent twice. */
const IN_FLIGHT_MAX = 32;

test("A2 A3 A4 an HTTP receiver killed and restarted amid 3,000 events of 200 keys: none lost, first deliveries in order", async () => {
  await using receiver = await startHttpReceiver();
  const verdict = await proveBrokerRestart({
    destination: `${receiver.origin}/events`,
    kill: () => receiver.kill(),
    restart: () => receiver.restart(),
    arrived: async () =>
      receiver.arrivals().map(({ headers, body }) => ({
        id: headers["idempotency-key"] ?? "",
        key: headers["partition-key"] ?? null,
        payload: body,
      })),
  });
  const { corrupt, duplicates, inversions, lost, unmarked } = verdict;
  assert.deepEqual(
    { corrupt, inversions, lost, unmarked },
    { corrupt: [], inversions: [], lost: [], unmarked: [] },
    describeVerdict(verdict),
  );
  assert.ok(duplicates <= IN_FLIGHT_MAX, `${duplicates} duplicates: more than were under way at the kill`);
});
