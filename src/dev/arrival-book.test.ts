import assert from "node:assert/strict";
import { test } from "node:test";
import { ArrivalBook } from "./arrival-book.ts";
import type { WireMessage } from "./destination-wire.ts";

function message(id: string, key: string, number: number): WireMessage {
  const payload = JSON.stringify({ order: key, number });
  return {
    id,
    type: "order.placed",
    destination: "broker",
    source: "orders.outbox",
    key,
    createdAt: "2026-01-10T12:00:00Z",
    payload,
  };
}

test("F6 duplicates are counted and do not break the order", () => {
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
});

test("F6 a first arrival after a later event of its key is out of order; other keys do not matter", () => {
  const book = new ArrivalBook();
  book.arrived(message("a", "k", 5));
  book.arrived(message("b", "other", 3));
  assert.equal(book.outOfOrder, 0);
  book.arrived(message("c", "k", 4));
  assert.equal(book.outOfOrder, 1);
});

test("F6 a marked event that never arrived is lost, once; a pending or discarded one is not", async (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: 0 });
  const book = new ArrivalBook();
  for (const id of ["came", "waits", "vanished", "given up"]) book.written("orders.outbox", id);
  book.arrived(message("came", "k", 1));
  const asked: string[][] = [];
  const ask = async (_source: string, ids: readonly string[]) => {
    asked.push([...ids]);
    return { waiting: new Set(["waits"]), discarded: new Set(["given up"]) };
  };
  await book.findLost(ask);
  assert.deepEqual(asked, [], "too early to ask");
  t.mock.timers.tick(3_001);
  await book.findLost(ask);
  await book.findLost(ask);
  assert.deepEqual([asked, book.lost, book.discarded], [[["waits", "vanished", "given up"]], 1, 1]);
});

test("F6 an event may arrive before its writer learns of the commit", async (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: 0 });
  const book = new ArrivalBook();
  book.arrived(message("early", "k", 1));
  book.written("orders.outbox", "early");
  t.mock.timers.tick(10_000);
  await book.findLost(async () => ({ waiting: new Set(), discarded: new Set() }));
  assert.equal(book.lost, 0);
});
