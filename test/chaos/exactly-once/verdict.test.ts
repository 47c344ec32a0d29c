import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Written } from "./event-writer.ts";
import { type Arrival, judge } from "./verdict.ts";

type Event = Partial<Written> & { readonly id: string };

function written(...events: readonly Event[]): Map<string, Written> {
  const blank = { key: "a", sequence: 1, type: "t", crc: 7, era: 0, end: "committed" } as const;
  return new Map(events.map(({ id, ...event }) => [id, { ...blank, ...event }]));
}

/** One partition, in this order. */
function arrived(...ids: readonly string[]): Arrival[] {
  return ids.map((id, offset) => ({ topic: "t", partition: 0, offset, id, key: "a", crc: 7 }));
}

function marked(...ids: readonly string[]): Map<string, boolean> {
  return new Map(ids.map((id) => [id, true]));
}

function violations(diary: Map<string, Written>, rows: Map<string, boolean>, arrivals: Arrival[], eras = 1): string[] {
  return judge({ diary, rows, arrivals, eras }).violations.map(({ what, id }) => `${what} ${id}`);
}

describe("the verdict on exactly once", () => {
  const three = written({ id: "x", sequence: 1 }, { id: "y", sequence: 2 }, { id: "z", sequence: 3 });

  test("F1: all that was kept, once and in order, is without a fault", () => {
    assert.deepEqual(violations(three, marked("x", "y", "z"), arrived("x", "y", "z")), []);
  });

  test("F1: a missing, a second, a swapped and an unwritten event are each told by id", () => {
    const rows = marked("x", "y", "z");
    assert.deepEqual(violations(three, rows, arrived("x", "z")), ["lost y"]);
    assert.deepEqual(violations(three, rows, arrived("x", "y", "z", "y")), ["duplicate y"]);
    assert.deepEqual(violations(three, rows, arrived("y", "x", "z")), ["out of order x"]);
    assert.deepEqual(violations(three, rows, arrived("x", "y", "z", "?")), ["foreign ?"]);
  });

  test("F1: an event of a rolled-back transaction must never arrive", () => {
    const diary = written({ id: "x", end: "rolled-back" });
    assert.deepEqual(violations(diary, marked(), arrived("x")), ["foreign x"]);
    assert.deepEqual(violations(diary, marked(), []), []);
  });

  test("F1: other bytes, another key, another topic or a second partition of a key are told", () => {
    const [x, y, z] = arrived("x", "y", "z") as [Arrival, Arrival, Arrival];
    const rows = marked("x", "y", "z");
    assert.deepEqual(violations(three, rows, [{ ...x, crc: 8 }, y, z]), ["corrupt x"]);
    assert.deepEqual(violations(three, rows, [x, { ...y, key: "b" }, z]), ["corrupt y"]);
    assert.deepEqual(violations(three, rows, [x, y, { ...z, partition: 1 }]), ["scattered z"]);
  });

  test("F1: a row that is gone without a failover, and one that is not marked, are told", () => {
    assert.deepEqual(violations(three, marked("x", "y"), arrived("x", "y", "z")), ["vanished z", "foreign z"]);
    const rows = new Map([...marked("x", "y"), ["z", false] as const]);
    assert.deepEqual(violations(three, rows, arrived("x", "y", "z")), ["unmarked z"]);
  });

  test("F1: what a failover made the database forget is not lost, may have arrived once, and stays in order", () => {
    // y and z were forgotten; the new primary counts on from 1.
    const diary = new Map([...three, ...written({ id: "new", sequence: 2, era: 1 })]);
    const rows = marked("x", "new");
    assert.deepEqual(violations(diary, rows, arrived("x", "y", "new"), 2), []);
    assert.deepEqual(violations(diary, rows, arrived("x", "y", "y", "new"), 2), ["duplicate y"]);
    assert.deepEqual(violations(diary, rows, arrived("x", "new", "y"), 2), ["out of order y"]);
    const { forgotten, lostByDatabase } = judge({ diary, rows, arrivals: arrived("x", "y", "new"), eras: 2 });
    assert.deepEqual({ forgotten, lostByDatabase }, { forgotten: 1, lostByDatabase: 1 });
  });
});
