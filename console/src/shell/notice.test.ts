import assert from "node:assert/strict";
import { test } from "node:test";
import { noticeBetween } from "./notice.ts";

test("F3 a browser is notified when health gets worse and of new dead letters, and of nothing else", () => {
  const well = { service: "shop", health: "healthy", deadLetters: 2 } as const;
  assert.equal(noticeBetween(well, well), null);
  assert.equal(noticeBetween(well, { ...well, deadLetters: 1 }), null);
  assert.equal(noticeBetween({ ...well, health: "unhealthy" }, well), null);
  assert.equal(noticeBetween(well, { ...well, deadLetters: 3 }), "1 new dead letter");
  const grades = [
    { ...well, grade: "ok" },
    { ...well, grade: "attention" },
  ] as const;
  assert.equal(noticeBetween(...grades), "health ok → attention");
  const worse = { ...well, health: "degraded", deadLetters: 5 } as const;
  assert.equal(noticeBetween(well, worse), "health healthy → degraded, 3 new dead letters");
});
