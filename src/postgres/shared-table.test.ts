import assert from "node:assert/strict";
import { test } from "node:test";
import {
  conflictingReaders,
  earlierDeployments,
  ledgerOfAnother,
  otherDestinations,
  type Reader,
} from "./shared-table.ts";

const reader = (instance: string, pipeline: string, parts: Partial<Reader> = {}): Reader => ({
  pipeline,
  instance,
  instanceName: instance,
  service: "shop",
  takes: null,
  end: null,
  ownsLanes: false,
  isPaused: false,
  formerService: null,
  hasLedger: false,
  settledMs: 0,
  joinedMs: 0,
  leaseMs: 10_000,
  ...parts,
});
const types = (...patterns: string[]) => patterns.map((pattern) => ({ pattern, mine: true }));
const first = (me: Reader, ...others: Reader[]) =>
  earlierDeployments(me, [me, ...others]).map(({ instance }) => instance);

test("H1 instances of one deployment are no rivals, whatever they own", () => {
  const me = reader("a", "t->kafka");
  assert.deepEqual(conflictingReaders(me, [me, reader("b", "t->kafka", { ownsLanes: true })]), []);
  assert.deepEqual(conflictingReaders(me, [me, reader("b", "t->kafka", { service: null })]), [], "an older program");
  const split = reader("a", "t->kafka", { takes: types("a.*") });
  assert.deepEqual(conflictingReaders(split, [split, reader("b", "t->rabbit", { takes: types("b.*") })]), []);
  assert.deepEqual(
    conflictingReaders(me, [me, reader("b", "t->kafka[a,b]", { takes: types("a", "b") })]),
    [],
    "the same end",
  );
});

test("H1 of two destinations for the same events the one that has lanes came first, else the one that delivered last", () => {
  const kafka = reader("a", "t->kafka", { joinedMs: 5 });
  const rabbit = reader("b", "t->rabbit", { joinedMs: 9 });
  assert.deepEqual([first(kafka, rabbit), first(rabbit, kafka)], [[], ["a"]]);
  const last = { ...rabbit, settledMs: 100 };
  assert.deepEqual([first(kafka, last), first(last, kafka)], [["b"], []]);
  const owning = { ...kafka, ownsLanes: true };
  assert.deepEqual([first(owning, last), first(last, owning)], [[], ["a"]]);
});

test("H1 a pipeline that was handed over gives way, and takes its lanes back only when the other has none", () => {
  const old = reader("a", "t->kafka", { isPaused: true, settledMs: 100 });
  const next = reader("b", "t->rabbit");
  assert.deepEqual(first(next, old), []);
  assert.deepEqual(first({ ...old, isPaused: false }, { ...next, ownsLanes: true }), ["b"]);
});

test("H1 of two services on one pipeline the one that served it last came first, also after both have rejoined", () => {
  const shop = reader("a", "t->kafka", { formerService: "shop", joinedMs: 9 });
  const other = reader("b", "t->kafka", { formerService: "shop", service: "other", joinedMs: 5 });
  assert.deepEqual([first(shop, other), first(other, shop)], [[], ["a"]]);
  assert.equal(ledgerOfAnother(other), null);
  assert.match(ledgerOfAnother({ ...other, hasLedger: true }) ?? "", /ledger of the service shop, but this is other/);
});

test("H1 while the routes of one deployment change, only its new pipelines wait", () => {
  const old = reader("old", "t->kafka", { ownsLanes: true });
  const kept = reader("new", "t->kafka", { takes: types("a.*") });
  const added = reader("new", "t->rabbit", { takes: types("b.*") });
  const readers = [old, kept, added];
  assert.deepEqual(earlierDeployments(kept, readers), []);
  assert.deepEqual(
    earlierDeployments(added, readers).map(({ instance }) => instance),
    ["old"],
  );
  const back = reader("newer", "t->kafka");
  const owning = [kept, added].map((it) => ({ ...it, ownsLanes: true }));
  assert.deepEqual(
    earlierDeployments(back, [...owning, back]),
    [],
    "the lanes of a pipeline that both serve stay shared",
  );
});

test("H1 instances of one pipeline with another destination are reported", () => {
  const me = reader("a", "t->kafka", { end: "kafka one:9092" });
  const same = reader("b", "t->kafka", { end: "kafka one:9092" });
  const other = reader("c", "t->kafka", { end: "kafka two:9092" });
  assert.deepEqual(otherDestinations(me, [me, same, other]), [other]);
});
