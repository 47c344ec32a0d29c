import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { TEXT_BYTES_MAX } from "../../core/event.ts";
import type { TypeFilter } from "../../ports/queue-store.ts";
import { until } from "./contract-case.ts";
import { type Stage, storeCases } from "./store-stage.ts";

/** In the normalized form of jsonb, so that every kind of column must return it unchanged. */
const JSON_TEXTS = [
  '{"a": 1.10, "bb": [true, null, "\\u0001 é 🔑"]}',
  '"text"',
  "null",
  "[]",
  "12345678901234567890.123456789012345678901234567890",
  JSON.stringify("x".repeat(20_000)),
];
const OTHER_TEXTS = ['{"b":1,  "a":2,"a":3}', "no json at all", "line\nbreak\ttab 'quote' \"double\" \\", ""];
const OTHER_BYTES = [Buffer.from([0]), Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))];

const order: TypeFilter = [
  { pattern: "order.secret", mine: false },
  { pattern: "order.*", mine: true },
  { pattern: "*.final", mine: true },
  { pattern: "exact", mine: true },
];

/** Types with characters that are special in SQL, LIKE or regular expressions, each with one that must not match it. */
const HOSTILE_TYPES: readonly (readonly [pattern: string, taken: string, left: string])[] = [
  ["100%*", "100%x", "100x"],
  ["a_*", "a_b", "axb"],
  ["a.b", "a.b", "axb"],
  ["it's*", "it's me", "its me"],
  ["back\\slash*", "back\\slash", "backslash"],
  ["[ab]*", "[ab]c", "a"],
  ["(a|b)*", "(a|b)", "a"],
  ["$1*end", "$1 the end", "1 the end"],
  ['"q"*', '"q"', "q"],
  ["Case*", "Case1", "case1"],
  ["{x,y}", "{x,y}", "x"],
];

/** Which events a pipeline reads, and that it gets them unchanged. */
export const contentCases = storeCases([
  [
    "A16 a payload arrives byte for byte as it is stored: JSON",
    async (stage) => {
      await assertPayloads(
        stage,
        JSON_TEXTS.map((text) => Buffer.from(text)),
      );
    },
  ],
  [
    "A16 a payload arrives byte for byte as it is stored: any text, also an empty one",
    (stage) =>
      assertPayloads(
        stage,
        OTHER_TEXTS.map((text) => Buffer.from(text)),
      ),
    ({ payloads }) => payloads !== "json",
  ],
  [
    "A16 a payload arrives byte for byte as it is stored: any bytes, zero included",
    (stage) => assertPayloads(stage, OTHER_BYTES),
    ({ payloads }) => payloads === "bytes",
  ],

  [
    "an event has its type, its key, no failure, no fault and its time of writing in UTC",
    async (stage) => {
      await stage.write("a1", { type: "order.placed" });
      const [event] = await (await stage.own()).read();
      assert.ok(event !== undefined);
      assert.deepEqual(
        [event.type, event.key, event.lane, event.failures, event.fault],
        ["order.placed", "a", 0, 0, null],
      );
      if (event.createdAt !== null) {
        assert.match(event.createdAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/);
        assert.ok(Math.abs(Date.parse(event.createdAt) - Date.now()) < 3_600_000, event.createdAt);
      }
    },
  ],

  [
    "B6 headers and correlation id arrive as written, whatever their names",
    async (stage) => {
      const headers = JSON.parse('{"tenant":"t é","X-Upper":"","__proto__":"p","with space":"\\"q\\" \\\\ \'"}');
      await stage.write("a1", { headers, correlationId: "c'1" });
      await stage.write("a2");
      const [first, second] = await (await stage.own()).read();
      assert.deepEqual(Object.entries(first?.headers ?? {}).sort(), Object.entries(headers).sort());
      assert.equal(first?.correlationId, "c'1");
      assert.deepEqual([Object.keys(second?.headers ?? {}), second?.correlationId], [[], null]);
    },
    ({ headers }) => headers,
  ],

  [
    "an event whose payload exceeds the limit is returned with a fault and without its payload",
    async (stage) => {
      const owner = await stage.own({ payloadBytesMax: 1_000 });
      await stage.write("a1", { payload: Buffer.from(JSON.stringify("x".repeat(2_000))) });
      await stage.write("a2");
      const [large, small] = await owner.read();
      assert.equal(large?.id, stage.id("a1"));
      assert.equal(large.fault?.code, "EVENT_TOO_LARGE");
      assert.equal(large.payload.length, 0);
      assert.equal(small?.fault, null);
    },
  ],

  [
    "H1 wide headers arrive whole and count towards the size of a page",
    async (stage) => {
      const headers = { a: "x".repeat(100_000), b: "é".repeat(20_000) };
      await stage.write("a1 b1 c1 d1", { headers });
      const owner = await stage.own();
      await owner.inRun(async (run) => {
        const page = await run.next(10, 150_000);
        assert.ok(page.length >= 1 && page.length <= 2, `${page.length} events with 140,000 bytes each in 150,000`);
        assert.deepEqual(page[0]?.headers, headers);
        assert.equal(page[0]?.fault, null);
      });
    },
    ({ headers }) => headers,
  ],

  [
    "H1 an event whose key, type or correlation id exceeds its limit is returned with a fault and without it",
    async (stage) => {
      const owner = await stage.own();
      const wide = "x".repeat(TEXT_BYTES_MAX + 1);
      await stage.write("a1", { key: wide });
      await stage.write("b1", { key: "x".repeat(TEXT_BYTES_MAX) });
      const events = await owner.read();
      const [large, small] = ["a1", "b1"].map((name) => events.find(({ id }) => id === stage.id(name)));
      assert.deepEqual([large?.fault?.code, large?.key], ["EVENT_TOO_LARGE", null]);
      assert.match(large?.fault?.reason ?? "", /key has 8193 bytes, more than the 8192/);
      assert.deepEqual([small?.fault, small?.key?.length], [null, TEXT_BYTES_MAX]);
    },
  ],

  [
    "D2 a pipeline reads only its own types: exact ones and patterns, the first match decides",
    async (stage) => {
      const types = [
        "order.placed",
        "order.secret",
        "orders.placed",
        "x.final",
        ".final",
        "final",
        "exact",
        "exactly",
        "order.",
      ];
      for (const [index, type] of types.entries()) await stage.write(`e${index}`, { type });
      const events = await (await stage.own({ types: order })).read();
      assert.deepEqual(
        events.map(({ type }) => type).sort(),
        ["order.placed", "x.final", ".final", "exact", "order."].sort(),
      );
    },
  ],

  [
    "a pattern matches every character except `*` literally",
    async (stage) => {
      const types: TypeFilter = HOSTILE_TYPES.map(([pattern]) => ({ pattern, mine: true }));
      const written = HOSTILE_TYPES.flatMap(([, taken, left]) => [taken, left]);
      for (const [index, type] of written.entries()) await stage.write(`e${index}`, { type });
      const events = await (await stage.own({ types })).read();
      assert.deepEqual(events.map(({ type }) => type).sort(), HOSTILE_TYPES.map(([, taken]) => taken).sort());
    },
  ],

  [
    "a pipeline with an empty filter reads no events",
    async (stage) => {
      await stage.write("a1");
      assert.equal(await (await stage.own({ types: [] })).sees(), "");
    },
  ],

  [
    "two pipelines of one source divide its events, and each settles its own lanes",
    async (stage) => {
      await stage.write("a1 a2", { type: "x" });
      await stage.write("b1", { type: "y" });
      const ofX = await stage.own({ name: "x", types: [{ pattern: "x", mine: true }] });
      const ofY = await stage.own({
        name: "y",
        types: [
          { pattern: "x", mine: false },
          { pattern: "*", mine: true },
        ],
      });
      assert.equal(stage.show(await ofX.read()), "a1 a2");
      assert.equal(stage.show(await ofY.read()), "b1");
      await ofX.settle({ delivered: stage.ids("a1") });
      await ofY.settle({ delivered: stage.ids("b1") });
      assert.equal(await stage.delivered(), "a1 b1");
    },
  ],

  [
    "D2 a rule can match key, correlation id and headers; a missing one matches nothing",
    async (stage) => {
      const when = [
        { field: "header:region's", patterns: ["eu", "uk-*"] },
        { field: "key", patterns: ["a*", "%"] },
        { field: "correlation_id", patterns: ["*"] },
      ] as const;
      const europe = { "region's": "eu" };
      await stage.write("a1", { headers: europe, correlationId: "c" });
      await stage.write("a2", { headers: { "region's": "uk-1" }, correlationId: "c" });
      await stage.write("a3", { headers: { "region's": "us" }, correlationId: "c" });
      await stage.write("a4", { headers: europe });
      await stage.write("a5", { correlationId: "c" });
      await stage.write("b1", { headers: europe, correlationId: "c" });
      await stage.write("-1", { headers: europe, correlationId: "c" });
      const rules = (mine: boolean): TypeFilter => [
        { pattern: "*", when, mine },
        { pattern: "*", mine: !mine },
      ];
      const narrow = await stage.own({ name: "narrow", types: rules(true) });
      const wide = await stage.own({ name: "wide", types: rules(false) });
      const idsOf = async (owner: typeof narrow) => (await owner.read()).map(({ id }) => id).sort();
      assert.deepEqual(await idsOf(narrow), ["a1", "a2"].map((name) => stage.id(name)).sort());
      assert.deepEqual(await idsOf(wide), ["a3", "a4", "a5", "b1", "-1"].map((name) => stage.id(name)).sort());
      assert.deepEqual([(await narrow.store.backlog()).pending, (await wide.store.backlog()).pending], [2, 5]);
    },
    ({ headers }) => headers,
  ],

  [
    "D6 types that match no pipeline are reported with their count, at most 1,000",
    async (stage) => {
      const first = await stage.own({ name: "x", types: [{ pattern: "x", mine: true }] });
      await stage.own({ name: "y", types: [{ pattern: "y*", mine: true }] });
      await stage.write("a1", { type: "x" });
      await stage.write("b1", { type: "yy" });
      await stage.write("c1 c2", { type: "unknown's" });
      const many = Array.from({ length: 1_050 }, (_, index) => `d${index}`).join(" ");
      await stage.subject.insertInOneTransaction([stage.events(many, { type: "z" })]);
      let unrouted = await first.store.unrouted();
      await until("both types are reported", async () => {
        unrouted = await first.store.unrouted();
        return unrouted.length >= 2;
      });
      assert.deepEqual(
        [...unrouted].sort((a, b) => a.count - b.count),
        [
          { type: "unknown's", count: 2 },
          { type: "z", count: 1_000 },
        ],
      );
    },
  ],

  [
    "D6 types of another living instance are not reported, and are reported once that instance is dead",
    async (stage) => {
      const first = await stage.own({ name: "x", types: [{ pattern: "x", mine: true }] });
      const other = await stage.own({ name: "y", types: [{ pattern: "y*", mine: true }] });
      await stage.write("a1", { type: "x" });
      await stage.write("b1 b2", { type: "yy" });
      assert.deepEqual(await first.store.unrouted(), []);
      await other.die();
      assert.deepEqual(await first.store.unrouted(), [{ type: "yy", count: 2 }]);
    },
  ],

  [
    "D6 of several pipelines only the first with an owner of lane 0 reports; none while the types of an instance are unknown",
    async (stage) => {
      const unknown = { type: "unknown's" };
      const first = await stage.own({ name: "x", types: [{ pattern: "x", mine: true }] });
      const second = await stage.own({ name: "y", types: [{ pattern: "y", mine: true }] });
      await stage.write("a1", unknown);
      const found = [{ ...unknown, count: 1 }];
      assert.deepEqual([await first.store.unrouted(), await second.store.unrouted()], [found, []]);
      await first.die();
      assert.deepEqual(await second.store.unrouted(), found);
      const silent = { id: randomUUID(), name: "older", leaseMs: 60_000, pipelines: ["x"] };
      await stage.subject.source.membership.join(silent);
      assert.deepEqual(await second.store.unrouted(), []);
      await stage.subject.source.membership.leave(silent.id);
      assert.deepEqual(await second.store.unrouted(), found);
    },
  ],

  [
    "pruning deletes only delivered events, at most as many as requested and none that is too young",
    async (stage) => {
      await stage.write("a1 a2 a3 a4 a5");
      const owner = await stage.own();
      await owner.handBack((await owner.read()).slice(3));
      await owner.settle({ delivered: stage.ids("a1 a2 a3") });
      assert.equal(await owner.store.prune(3_600_000, 100), 0);
      await until("two are old enough", async () => (await owner.store.prune(0, 2)) === 2);
      assert.equal(await owner.store.prune(0, 100), 1);
      assert.equal(await owner.store.prune(0, 100), 0);
      assert.equal(await stage.delivered(), "");
      assert.equal(await owner.sees(), "a4 a5");
    },
    ({ prunes }) => prunes,
  ],
]);

async function assertPayloads(stage: Stage, payloads: Buffer[]): Promise<void> {
  for (const [index, payload] of payloads.entries()) await stage.write(`a${index}`, { payload });
  const events = await (await stage.own()).read();
  assert.deepEqual(
    events.map((event) => event.payload.toString("hex")),
    payloads.map((payload) => payload.toString("hex")),
  );
}
