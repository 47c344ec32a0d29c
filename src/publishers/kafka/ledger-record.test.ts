import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { isRelayError } from "../../core/errors.ts";
import type { LaneAddress } from "../../ports/transactions.ts";
import { batchOfNote, decodeNote, encodeNote, lanePrefix, ringKey, transactionalId } from "./ledger-record.ts";

const lane: LaneAddress = {
  database: "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
  pipeline: "shop -> kafka",
  lane: 3,
  slot: 7,
};
const text = fc.oneof(
  fc.uuid(),
  fc.uuid().map((id) => id.toUpperCase()),
  fc.string({ unit: "binary", maxLength: 300 }),
);

test("A2 a note comes back as it was written, whatever its ids are", () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }), fc.array(text, { maxLength: 40 }), (batch, ids) => {
      const value = encodeNote({ batch, ids });
      assert.deepEqual(decodeNote(value, "here"), { batch, ids });
      assert.equal(batchOfNote(value, "here"), batch);
    }),
  );
});

test("texts that are nearly a UUID keep their form", () => {
  const ids = [
    "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
    "3F2504e0-4f89-41d3-9a0c-0305e82c3301",
    "3f2504e0-4f89-41d3-9a0c-0305e82c330g",
    "3f2504e0x4f89-41d3-9a0c-0305e82c3301",
    "3f2504e-04f89-41d3-9a0c-0305e82c3301",
    // U+0130 ends in the byte of "0", and takes two of them.
    "3f2504e\u0130-4f89-41d3-9a0c-0305e82c3301",
    "-".repeat(36),
  ];
  for (const id of ids) assert.deepEqual(decodeNote(encodeNote({ batch: 1n, ids: [id] }), "here").ids, [id]);
  assert.deepEqual(decodeNote(encodeNote({ batch: 1n, ids }), "here").ids, ids);
});

test("five thousand UUIDs take 17 bytes each", () => {
  const ids = Array.from({ length: 5_000 }, (_, n) => `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`);
  assert.equal(encodeNote({ batch: 1n, ids }).length, 13 + 5_000 * 17);
});

test("a note that is cut or of another form is named and not taken for something else", () => {
  const whole = encodeNote({ batch: 5n, ids: ["one", "3f2504e0-4f89-41d3-9a0c-0305e82c3301", "x".repeat(500)] });
  const newer = Buffer.from(whole);
  newer.writeUInt8(2, 0);
  const endless = Buffer.concat([whole.subarray(0, 13), Buffer.alloc(8, 0xff)]);
  const cut = Array.from({ length: whole.length }, (_, length) => whole.subarray(0, length));
  for (const value of [...cut, newer, endless]) {
    const isNamed = (error: unknown) => isRelayError(error, "LEDGER_UNFIT") && /topic x, offset 7/.test(error.message);
    assert.throws(() => decodeNote(value, "topic x, offset 7"), isNamed);
  }
});

test("B4 a lane's transactional id and keys are its own, and the id begins with the service", () => {
  const others = [{ database: "b" }, { pipeline: "shop -> Kafka" }, { lane: 30 }, { lane: 33 }].map((it) => ({
    ...lane,
    ...it,
  }));
  assert.match(transactionalId("shop", lane), /^shop\.3f2504e0-4f89-41d3-9a0c-0305e82c3301\.[0-9a-f]{12}\.3$/);
  for (const other of others) {
    assert.notEqual(transactionalId("shop", other), transactionalId("shop", lane));
    assert.ok(!lanePrefix(other).startsWith(lanePrefix(lane)));
  }
  const moved = { ...lane, slot: 9 };
  assert.equal(transactionalId("shop", moved), transactionalId("shop", lane));
});

test("the keys of a lane are as many as the ring has places", () => {
  const keys = Array.from({ length: 200 }, (_, batch) => ringKey(lanePrefix(lane), BigInt(batch), 64));
  assert.equal(new Set(keys).size, 64);
  assert.equal(keys[64], keys[0]);
});
