import assert from "node:assert/strict";
import { test } from "node:test";
import { clockIn, timeIn } from "./time-zone.ts";

test("F3 times are shown and parsed in the selected zone, across daylight saving changes", () => {
  const winter = new Date("2026-01-31T23:30:00Z");
  assert.equal(clockIn("UTC", winter), "2026-01-31T23:30:00");
  assert.equal(clockIn("Europe/Berlin", winter), "2026-02-01T00:30:00");
  assert.equal(clockIn("Asia/Kathmandu", winter), "2026-02-01T05:15:00");
  for (const zone of ["UTC", "Europe/Berlin", "America/St_Johns", "Asia/Kathmandu", "local"]) {
    for (const at of ["2026-01-31T23:30:00.000Z", "2026-03-29T00:59:00.000Z", "2026-03-29T01:01:00.000Z"])
      assert.equal(timeIn(zone, clockIn(zone, new Date(at)).slice(0, 16))?.toISOString(), at, `${zone} ${at}`);
  }
  assert.equal(timeIn("UTC", "nonsense"), null);
});
