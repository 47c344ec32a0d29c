import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { isRelayError } from "../core/errors.ts";
import { type FilterPattern, type FilterRule, matchesFilter, streamFilter } from "./filter-pattern.ts";
import type { StreamAttribute, StreamRecord } from "./lambda-events.ts";

function record(image: Record<string, StreamAttribute>, eventName = "INSERT"): StreamRecord {
  const keys = image.id === undefined ? {} : { id: image.id };
  return { eventName, eventSource: "aws:dynamodb", dynamodb: { Keys: keys, NewImage: image, SequenceNumber: "1" } };
}

function intent(type: string, more: Record<string, StreamAttribute> = {}) {
  return { id: { S: "i-1" }, intent: { M: { type: { S: type }, payload: { S: "{}" } } }, ...more };
}

const holds = (rule: FilterRule, value: unknown) =>
  matchesFilter({ value: [rule] } as FilterPattern, { value } as unknown as StreamRecord);

describe("the filter of a relay", () => {
  const filter = streamFilter("Notify");

  for (const [what, right] of [
    ["a new intent of the type", record(intent("Notify"))],
    ["one whose delivered_at is null", record(intent("Notify", { delivered_at: { NULL: true } }))],
    ["one that was replayed", record(intent("Notify", { replayed_at: { S: "2030-01-01T00:00:00Z" } }))],
    ["one with attributes that the relay knows nothing of", record(intent("Notify", { extra: { L: [{ S: "x" }] } }))],
  ] satisfies [string, StreamRecord][]) {
    test(`D2 it takes ${what}`, () => assert.equal(matchesFilter(filter, right), true));
  }

  for (const [what, wrong] of [
    ["another type", record(intent("Notified"))],
    ["a type that only begins alike", record(intent("NotifyUser"))],
    ["a type in other letters", record(intent("notify"))],
    ["a change of an intent", record(intent("Notify"), "MODIFY")],
    ["a removal", { eventName: "REMOVE", dynamodb: { OldImage: intent("Notify") } }],
    ["one that was delivered when it was written", record(intent("Notify", { delivered_at: { S: "2030" } }))],
    ["an item without an intent", record({ id: { S: "i-1" } })],
    ["an intent that is a text", record({ id: { S: "i-1" }, intent: { S: "Notify" } })],
    ["a type that is no text", record({ id: { S: "i-1" }, intent: { M: { type: { N: "1" } } } })],
    ["the type in another place", record({ ...intent("Other"), type: { S: "Notify" } })],
    ["nothing at all", {}],
  ] satisfies [string, StreamRecord][]) {
    test(`D2 it does not take ${what}`, () => assert.equal(matchesFilter(filter, wrong), false));
  }

  test("D2 whatever the types are called, each intent is taken by its own relay alone", () => {
    const names = fc.uniqueArray(fc.string({ minLength: 1, maxLength: 40, unit: "binary" }), { minLength: 2 });
    fc.assert(
      fc.property(names, (types) => {
        for (const type of types) {
          // As it reaches AWS and comes back.
          const written = JSON.parse(JSON.stringify(record(intent(type)))) as StreamRecord;
          const takers = types.filter((other) =>
            matchesFilter(JSON.parse(JSON.stringify(streamFilter(other))) as FilterPattern, written),
          );
          assert.deepEqual(takers, [type]);
        }
      }),
    );
  });

  for (const type of ["", "x".repeat(4_100)]) {
    test(`D2 a filter for a type of ${type.length} characters is refused`, () => {
      assert.throws(
        () => streamFilter(type),
        (error) => isRelayError(error, "CONFIG_INVALID"),
      );
    });
  }
});

describe("rules of filters, as AWS documents them", () => {
  for (const [rule, right, wrong] of [
    ["a", ["a", ["b", "a"]], ["A", "", undefined, { S: "a" }, null]],
    ["", [""], ["a", null, undefined]],
    [null, [null], ["", undefined, "null"]],
    [true, [true], ["true", false]],
    [5, [5], ["5", 5.1]],
    [{ prefix: "eu-" }, ["eu-central-1", "eu-"], ["us-1", "a eu-", undefined, 5]],
    [{ suffix: ".png" }, ["a.png"], ["a.png.txt", undefined]],
    [{ "equals-ignore-case": "AbC" }, ["abc", "ABC"], ["abcd"]],
    [{ "anything-but": ["a", "b"] }, ["c", "", null, 5], ["a", "b", undefined, { S: "c" }]],
    [{ "anything-but": "a" }, ["c"], ["a", undefined]],
    [{ numeric: [">", 0, "<=", 5] }, [1, 5], [0, 6, "3", undefined]],
    [{ numeric: ["=", 5] }, [5], [4, "5"]],
    [{ exists: true }, ["", null, 0, ["a"]], [undefined, { S: "a" }, []]],
    [{ exists: false }, [undefined, {}], ["", null, ["a"]]],
  ] satisfies [FilterRule, unknown[], unknown[]][]) {
    test(`D2 ${JSON.stringify(rule)}`, () => {
      for (const value of right) assert.equal(holds(rule, value), true, `holds for ${JSON.stringify(value)}`);
      for (const value of wrong) assert.equal(holds(rule, value), false, `holds not for ${JSON.stringify(value)}`);
    });
  }

  test("D2 one of several rules must hold, and every name", () => {
    const pattern = { a: ["x", { prefix: "y" }], b: { c: [{ exists: false }] } };
    const matches = (value: unknown) => matchesFilter(pattern, value as StreamRecord);
    assert.deepEqual(
      [matches({ a: "x" }), matches({ a: "yes", b: {} }), matches({ a: "yes", b: { d: 1 } })],
      [true, true, true],
    );
    assert.deepEqual([matches({ a: "z" }), matches({ a: "x", b: { c: 1 } }), matches({})], [false, false, false]);
  });

  test("D2 $or takes one of several names", () => {
    const pattern: FilterPattern = { $or: [{ a: ["x"] }, { b: { c: ["y"] } }], d: ["z"] };
    const matches = (value: unknown) => matchesFilter(pattern, value as StreamRecord);
    assert.deepEqual([matches({ a: "x", d: "z" }), matches({ b: { c: "y" }, d: "z" })], [true, true]);
    assert.deepEqual([matches({ d: "z" }), matches({ a: "x" })], [false, false]);
  });

  test("D2 a name of JavaScript's own is no attribute of a record", () => {
    assert.equal(holds({ exists: true }, undefined), false);
    assert.equal(matchesFilter({ toString: [{ exists: true }] }, {}), false);
  });

  for (const rule of [
    { wildcard: "a*" },
    {},
    { prefix: "a", suffix: "b" },
    { numeric: ["~", 1] },
    { numeric: [">"] },
  ]) {
    test(`D2 ${JSON.stringify(rule)} is no rule, and never passed over in silence`, () => {
      assert.throws(
        () => holds(rule as FilterRule, 5),
        (error) => isRelayError(error, "CONFIG_INVALID"),
      );
    });
  }
});
