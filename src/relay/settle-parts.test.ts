import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Failure, Settlement } from "../ports/queue-store.ts";
import { firstPart, rowsOf, SettleSize } from "./settle-parts.ts";

const failure = (id: string): Failure => {
  return { id, key: null, reason: "no", attempts: 1, next: { kind: "dead", parks: false } };
};

const settlements = fc
  .record({
    ledger: fc.constantFrom("none" as const, "batch" as const, "heal" as const),
    delivered: fc.array(fc.uuid(), { maxLength: 30 }),
    failed: fc.array(fc.uuid().map(failure), { maxLength: 10 }),
    handedBack: fc.array(fc.uuid(), { maxLength: 10 }),
    releasedHolds: fc.array(fc.uuid(), { maxLength: 5 }),
  })
  .map((parts): Settlement => {
    const batch = parts.ledger !== "none" ? 9n : parts.delivered.length > 0 ? 6n : 5n;
    const grant = { lane: 0, owner: "me", epoch: 1n };
    return { grant, previousBatch: 5n, batch, suspects: [], ...parts };
  });

test("H1 a settlement in parts writes each row once, in order, and its holds and its batch number last", () => {
  fc.assert(
    fc.property(settlements, fc.integer({ min: 1, max: 12 }), (whole, rowsMax) => {
      const parts: Settlement[] = [];
      for (let left: Settlement | null = whole; left !== null; ) {
        const [part, rest]: readonly [Settlement, Settlement | null] = firstPart(left, rowsMax);
        parts.push(part);
        left = rest;
      }
      for (const field of ["delivered", "failed", "handedBack", "releasedHolds"] as const) {
        assert.deepEqual(
          parts.flatMap((part) => part[field] as readonly unknown[]),
          whole[field],
        );
      }
      assert.ok(parts.every((part) => rowsOf(part) <= rowsMax));
      let reached = whole.previousBatch;
      for (const part of parts) {
        assert.equal(part.previousBatch, reached);
        if (part !== parts.at(-1)) assert.deepEqual(part.releasedHolds, []);
        if (whole.ledger !== "none")
          assert.equal(part.batch, part === parts.at(-1) ? whole.batch : whole.previousBatch);
        else assert.equal(part.batch, reached + (part.delivered.length > 0 ? 1n : 0n));
        reached = part.batch;
      }
    }),
  );
});

test("H1 a write that times out is halved down to one row, and grows again only while writes are quick", () => {
  const size = new SettleSize(2_000);
  size.gaveUp(2_000, 4_000);
  assert.equal(size.rows, 1_000);
  size.gaveUp(1_000, 4_000);
  size.done(500, 2_000);
  assert.equal(size.rows, 500, "half of the time that was too long is not quick");
  size.done(100, 10);
  assert.equal(size.rows, 500, "a small write proves nothing");
  size.done(500, 900);
  assert.equal(size.rows, 625);
  for (let tries = 0; tries < 20; tries += 1) size.gaveUp(size.rows, 4_000);
  assert.equal(size.rows, 1);
  for (let writes = 0; writes < 60; writes += 1) size.done(size.rows, 1);
  assert.equal(size.rows, 2_000);
});
