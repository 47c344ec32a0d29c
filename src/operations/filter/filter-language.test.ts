import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { isRelayError } from "../../core/errors.ts";
import { EVENT_STATES, type EventFilter } from "../events/event-filter.ts";
import { bothFilters, filterText, parseDeadLetterChoice, parseEventFilter } from "./filter-language.ts";
import { FILTER_LENGTH_MAX } from "./filter-words.ts";

const NOW = new Date("2026-11-16T12:00:00Z");
const parse = (text: string) => parseEventFilter(text, NOW);

test("F3 a filter is written as fields, with a bare word for an id, a key or a correlation id", () => {
  const cases: readonly (readonly [string, EventFilter])[] = [
    ["", {}],
    [" \t\n ", {}],
    ["42", { word: "42" }],
    ['"order:42"', { word: "order:42" }],
    ["order\\:42", { word: "order:42" }],
    ["type:order.* key:42 corr:abc", { type: "order.*", key: "42", correlationId: "abc" }],
    ["  source:shop.outbox   state:dead ", { source: "shop.outbox", state: "dead" }],
    ["id:a id:b", { ids: ["a", "b"] }],
    ['text:"a \\"quoted\\" \\\\ word" group:0123456789ab', { text: 'a "quoted" \\ word', group: "0123456789ab" }],
    ["key:47*", { keyLike: "47*" }],
    ['key:"47*"', { key: "47*" }],
    ["key:47\\*", { key: "47*" }],
    ['error:"no such customer"', { error: "no such customer" }],
    [
      "header:tenant=acme header:trace header:region=eu-*",
      {
        headers: [
          { name: "tenant", value: { value: "acme", isPattern: false } },
          { name: "trace", value: null },
          { name: "region", value: { value: "eu-*", isPattern: true } },
        ],
      },
    ],
    [
      'payload.order.id:4711 payload.note:"a*"',
      {
        payload: [
          { path: ["order", "id"], value: "4711", isPattern: false },
          { path: ["note"], value: "a*", isPattern: false },
        ],
      },
    ],
    ['key:""', { key: "" }],
    ["key:a:b", { key: "a:b" }],
    ['key:a" "b', { key: "a b" }],
    ["key:';-- type:<script>", { key: "';--", type: "<script>" }],
    ["age:>5m age:<1h", { until: new Date("2026-11-16T11:55:00Z"), since: new Date("2026-11-16T11:00:00Z") }],
    [
      "since:2026-01-31 until:2026-02-01T12:30",
      { since: new Date("2026-01-31T00:00Z"), until: new Date("2026-02-01T12:30Z") },
    ],
    ["since:2026-01-31T12:00+01:00", { since: new Date("2026-01-31T11:00Z") }],
    ["since:2d until:90s", { since: new Date("2026-11-14T12:00:00Z"), until: new Date("2026-11-16T11:58:30Z") }],
  ];
  for (const [text, filter] of cases) assert.deepEqual(parse(text), filter, text);
});

test("F3 an error in a filter has the word, its position and the fix", () => {
  const cases: readonly (readonly [string, RegExp])[] = [
    ["key:1 colour:red", /"colour:red" at character 7 .*not a field.*quote it: "colour:red"/],
    ["stat:dead", /"stat:dead" at character 1 .*did you mean state:\?/],
    ["state:broken", /unknown state; use pending, retrying, parked, dead, unrouted, delivered, discarded/],
    ["key:1 type:a key:2", /"key:2" at character 14 .*"key:1" at character 1 sets the same field: keep one/],
    ["one two", /"two" at character 5 .*in quotes/],
    ["age:>5m until:2026-01-01", /"until:2026-01-01" at character 9 .*"age:>5m" at character 1/],
    ["key:1* key:2", /"key:2" at character 8 .*"key:1\*" at character 1 sets the same/],
    ["payload:4711", /"payload:4711" at character 1 .*payload\.order:4711, or text:4711/],
    ["payload..a:1", /name the field/],
    ["header:=acme", /name the header: write header:tenant=acme/],
    ["age:5m", /write age:>5m/],
    ["age:>5y", /write age:>5m/],
    ["since:yesterday", /not a time: write 2026-01-31/],
    ["since:2026-02-30", /not a time/],
    ["since:0000-01-01", /years 1 to 9999/],
    ["age:>999999999d", /years 1 to 9999/],
    ["key:", /the value after the colon is missing/],
    ['text:"open', /quote at character 6 is not closed/],
    ["key:a\\", /backslash at the end/],
    ["key:a\0b", /NUL character/],
    ["x".repeat(FILTER_LENGTH_MAX + 1), /10001 characters; the maximum is 10000/],
  ];
  for (const [text, message] of cases) {
    assert.throws(
      () => parse(text),
      (error) => isRelayError(error, "CONFIG_INVALID") && message.test(error.message),
      text.slice(0, 100),
    );
  }
});

test("F3 dead letters take the same filter, but no other state", () => {
  assert.deepEqual(parseDeadLetterChoice("state:dead key:1 group:ab", NOW), { key: "1", group: "ab" });
  assert.throws(() => parseDeadLetterChoice("key:1 state:parked", NOW), /"state:parked" at character 7/);
  assert.throws(
    () => parseDeadLetterChoice("key:1 payload.a:2", NOW),
    /"payload.a:2" at character 7 .*filter the events/,
  );
});

test("F3 a text filter and separate parameters are combined, unless they set the same field", () => {
  assert.deepEqual(bothFilters<EventFilter>({ key: "1" }, { type: "a", key: undefined }), { key: "1", type: "a" });
  assert.throws(() => bothFilters<EventFilter>({ key: "1" }, { key: "1" }), /key is set twice/);
});

const value = fc.string({ unit: "binary", maxLength: 30 }).filter((text) => !text.includes("\0"));
const time = fc.date({ min: new Date("0001-01-01T00:00Z"), max: new Date("9999-12-31T00:00Z"), noInvalidDate: true });
const name = value.filter((text) => text !== "" && !text.includes("="));
const plain = { noNullPrototype: true };
const literal = fc.record({ value, isPattern: fc.constant(false) }, plain);
const ofHeader = fc.record({ name, value: fc.option(literal) }, plain);
const ofPayload = fc.record(
  {
    path: fc.array(
      fc.string({ minLength: 1 }).filter((text) => !/[.\0]/.test(text)),
      { minLength: 1, maxLength: 3 },
    ),
    ...{ value, isPattern: fc.constant(false) },
  },
  plain,
);
const filters = fc.record(
  {
    ids: fc.array(value, { minLength: 1, maxLength: 3 }),
    ...{
      key: value,
      correlationId: value,
      type: value,
      source: value,
      destination: value,
      text: value,
      group: value,
      word: value,
    },
    ...{ error: value, headers: fc.array(ofHeader, { minLength: 1 }), payload: fc.array(ofPayload, { minLength: 1 }) },
    ...{ since: time, until: time, state: fc.constantFrom(...EVENT_STATES) },
  },
  { requiredKeys: [] },
);

test("F3 every filter can be written as text, and reads back as the same filter", () => {
  fc.assert(fc.property(filters, (filter) => assert.deepEqual(parse(filterText(filter)), { ...filter })));
});

test("F3 every text is a filter or an error with a position, and nothing else", () => {
  const pieces = fc.constantFrom(
    "key:",
    "age:>",
    "since:",
    "id:",
    '"',
    "\\",
    " ",
    "\0",
    "5m",
    "2026-01-01",
    "'; drop table",
    "<script>",
  );
  const texts = fc.oneof(
    fc.string({ unit: "binary", maxLength: 50 }),
    fc.array(fc.oneof(pieces, value), { maxLength: 8 }).map((parts) => parts.join("")),
  );
  fc.assert(
    fc.property(texts, (text) => {
      try {
        parse(text);
      } catch (error) {
        if (!isRelayError(error, "CONFIG_INVALID")) throw error;
        assert.match(error.message, /at character \d+ of the filter: /);
      }
    }),
    { numRuns: 2_000 },
  );
});
