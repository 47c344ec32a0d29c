import assert from "node:assert/strict";
import { test } from "node:test";
import { ArrivalBook } from "./arrival-book.ts";
import type { WireMessage } from "./destination-wire.ts";

function message(id: string, key: string, number: number): WireMessage {
  const payload = JSON.stringify({ order: key, number });
  return { id, type: "order.placed", source: "orders.outbox", key, createdAt: "2026-01-10T12:00:00Z", payload };
}

test("F6 what arrives twice is counted, and is no break of the order", () => {
  const book = new ArrivalBook();
  for (const [id, number] of [
    ["a", 1],
    ["b", 2],
    ["a", 1],
  ] as const) {
    book.arrived(message(id, "k", number));
  }
  assert.deepEqual([book.total, book.repeated, book.outOfOrder], [3, 1, 0]);
  assert.equal(book.latest[0]?.isRepeated, true);
  assert.deepEqual([...book.byType], [["order.placed", 3]]);
});

test("F6 a first arrival behind a later one of its key is out of order; other keys do not matter", () => {
  const book = new ArrivalBook();
  book.arrived(message("a", "k", 5));
  book.arrived(message("b", "other", 3));
  assert.equal(book.outOfOrder, 0);
  book.arrived(message("c", "k", 4));
  assert.equal(book.outOfOrder, 1);
});

test("F6 what is marked and never came is lost, once; what waits in its table is not", async (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: 0 });
  const book = new ArrivalBook();
  for (const id of ["came", "waits", "vanished"]) book.written("orders.outbox", id);
  book.arrived(message("came", "k", 1));
  const asked: string[][] = [];
  const stillThere = async (_source: string, ids: readonly string[]) => {
    asked.push([...ids]);
    return new Set(["waits"]);
  };
  await book.findLost(stillThere);
  assert.deepEqual(asked, [], "too early to ask");
  t.mock.timers.tick(3_001);
  await book.findLost(stillThere);
  await book.findLost(stillThere);
  assert.deepEqual([asked, book.lost], [[["waits", "vanished"]], 1]);
});

test("F6 an event may arrive before its writer hears of the commit", async (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: 0 });
  const book = new ArrivalBook();
  book.arrived(message("early", "k", 1));
  book.written("orders.outbox", "early");
  t.mock.timers.tick(10_000);
  await book.findLost(async () => new Set());
  assert.equal(book.lost, 0);
});
