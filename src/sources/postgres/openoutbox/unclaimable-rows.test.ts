import assert from "node:assert/strict";
import { test } from "node:test";
import { isRelayError } from "../../../core/errors.ts";
import { UnclaimableRows } from "./unclaimable-rows.ts";

test("H1 pending rows that cannot be claimed are reported after a while, a short lock is not", async () => {
  let nowMs = 0;
  const vain = new UnclaimableRows({ schema: "app", table: "openoutbox_events" }, () => nowMs);
  const waits = async () => true;
  await vain.claimed(0, waits);
  nowMs = 9_999;
  await vain.claimed(0, waits);
  await vain.claimed(1, waits);
  nowMs = 10_001;
  await vain.claimed(0, waits);
  nowMs = 20_001;
  await assert.rejects(
    vain.claimed(0, waits),
    (error) =>
      isRelayError(error, "ROW_UNMARKED") && /app\.openoutbox_events could not be claimed for 10 s/.test(error.message),
  );
  await vain.claimed(0, async () => false);
  await vain.claimed(0, waits);
});
