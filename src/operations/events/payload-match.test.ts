import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { PayloadFilter } from "./event-filter.ts";
import { payloadMatches, piecesOf, tokenOf } from "./payload-match.ts";

const field = (path: string, value: string): PayloadFilter => ({
  path: path.split("."),
  value,
  isPattern: value.includes("*"),
});
const has = (payload: string | Buffer, ...filters: PayloadFilter[]) => {
  const bytes = Buffer.from(payload);
  return payloadMatches(bytes, bytes.length, filters);
};

test("F3 a field of a payload is found by its path and value, in lists too, with every digit", () => {
  const order =
    '{"order": {"id": 12345678901234567890, "paid": true, "note": null, "lines": [{"sku": "A1"}, {"sku": "B2"}]}}';
  assert.ok(has(order, field("order.id", "12345678901234567890")));
  assert.ok(!has(order, field("order.id", "12345678901234567891")));
  assert.ok(!has(order, field("id", "12345678901234567890")), "not at that path");
  assert.ok(has(order, field("order.lines.sku", "B2"), field("order.paid", "true"), field("order.note", "null")));
  assert.ok(!has(order, field("order.lines.sku", "B2"), field("order.paid", "false")));
  assert.ok(has(order, field("order.id", "1234*90")));
  assert.ok(has('{"a.b": {"c": "x"}}', field("a.b.c", "x")), "a name with a dot");
  assert.ok(has('["4711", {"order": 4711}]', field("order", "4711")));
});

test("F3 a payload that is not JSON, or nested too deeply, does not match and is no error", () => {
  const nested = `${"[".repeat(30_000)}1${"]".repeat(30_000)}`;
  for (const payload of ["", "order 4711", '{"order": 4711', "\xff\xfe", Buffer.from([0xff, 0, 0x7b]), nested])
    assert.equal(has(payload, field("order", "4711")), false);
  assert.equal(
    payloadMatches(Buffer.from("{"), 1_000_000, [field("order", "4711")]),
    true,
    "matched by its text alone",
  );
});

test("F3 the texts that the database searches for are in every payload that matches", () => {
  const names = fc.string({ minLength: 1 }).filter((text) => !text.includes("."));
  fc.assert(
    fc.property(names, fc.oneof(fc.string({ unit: "binary" }), fc.integer()), (name, value) => {
      const text = JSON.stringify({ [name]: value });
      const filter: PayloadFilter = { path: [name], value: String(value), isPattern: false };
      assert.ok(has(text, filter), text);
      for (const piece of piecesOf(filter)) assert.ok(text.includes(piece), `${text} has ${piece}`);
      const token = tokenOf(filter)?.replaceAll("[:space:]", "\\s").replace("[[\\s]", "[\\[\\s]").replace("[]", "[\\]");
      if (token !== undefined) assert.match(text, new RegExp(token.replace(",[", ",\\[")));
    }),
  );
});
