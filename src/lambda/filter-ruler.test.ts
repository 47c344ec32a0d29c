// The matcher beside Event Ruler, the engine that AWS publishes and that Lambda's filters are documented by.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type RuledCase, ruledByAws } from "../../test/servers/event-ruler.ts";
import { type FilterPattern, matchesFilter, streamFilter } from "./filter-pattern.ts";
import type { StreamRecord } from "./lambda-events.ts";

const ours = ({ event, pattern }: RuledCase) => matchesFilter(pattern as FilterPattern, event as StreamRecord);

async function assertAgreed(cases: readonly RuledCase[]): Promise<void> {
  const theirs = await ruledByAws(cases);
  assert.equal(theirs.length, cases.length);
  const apart = cases.flatMap((it, at) =>
    ours(it) === theirs[at] ? [] : [{ ...it, aws: theirs[at], ours: ours(it) }],
  );
  assert.deepEqual(apart.slice(0, 5), []);
  assert.ok(theirs.filter((it) => it === true).length > cases.length / 20, "enough of them match");
  assert.ok(theirs.filter((it) => it === false).length > cases.length / 20, "enough of them do not");
}

const word = fc.constantFrom("a", "b", "ab", "eu-1", "Eu-1", "x.png", "", "ü", 'q"');
const leaf = fc.oneof(word, fc.integer({ min: -2, max: 6 }), fc.boolean(), fc.constant(null));
const name = fc.constantFrom("k", "l", "m");
const record = fc.letrec((tie) => ({
  value: fc.oneof({ maxDepth: 3 }, leaf, tie("object"), fc.array(leaf, { minLength: 1, maxLength: 3 })),
  object: fc.dictionary(name, tie("value"), { maxKeys: 3 }),
})).object;
const range = fc
  .tuple(fc.integer({ min: -2, max: 2 }), fc.integer({ min: 3, max: 6 }))
  .map(([low, high]) => ({ numeric: [">", low, "<=", high] }));
const rule = fc.oneof(
  leaf,
  word.filter((it) => it !== "").map((prefix) => ({ prefix })),
  word.filter((it) => it !== "").map((suffix) => ({ suffix })),
  word.filter((it) => it !== "").map((it) => ({ "equals-ignore-case": it })),
  fc.uniqueArray(word, { minLength: 1, maxLength: 3 }).map((it) => ({ "anything-but": it })),
  word.map((it) => ({ "anything-but": it })),
  fc.boolean().map((exists) => ({ exists })),
  range,
);
const rules = fc.array(rule, { minLength: 1, maxLength: 3 });
const pattern = fc.letrec((tie) => ({
  part: fc.oneof({ maxDepth: 2 }, rules, tie("object")),
  object: fc.dictionary(name, tie("part"), { minKeys: 1, maxKeys: 3 }),
})).object;

test("D2 the matcher agrees with the engine of AWS on random filters and records", async () => {
  const cases = fc.sample(fc.record({ pattern, event: record }), { numRuns: 6_000, seed: 20_260_101 });
  await assertAgreed(cases as RuledCase[]);
});

test("D2 the filter of a relay means the same to the engine of AWS, whatever the types are called", async () => {
  const types = fc.sample(fc.string({ minLength: 1, maxLength: 20, unit: "grapheme" }), { numRuns: 40, seed: 7 });
  const image = (type: string, more: object) => ({ id: { S: "1" }, intent: { M: { type: { S: type } } }, ...more });
  const of = (eventName: string, type: string, more: object = {}) => ({
    eventName,
    dynamodb: { Keys: { id: { S: "1" } }, NewImage: image(type, more) },
  });
  const cases = types.flatMap((type, at) => {
    const other = types[(at + 1) % types.length]!;
    const events = [
      of("INSERT", type),
      of("INSERT", type, { delivered_at: { NULL: true } }),
      of("INSERT", type, { delivered_at: { S: "2030" } }),
      of("MODIFY", type),
      of("INSERT", other),
      of("INSERT", `${type} `),
      { eventName: "INSERT", dynamodb: { NewImage: { intent: { S: type } } } },
    ];
    return events.map((event) => ({ pattern: streamFilter(type), event }));
  });
  await assertAgreed(cases);
});
