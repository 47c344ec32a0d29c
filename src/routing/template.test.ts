import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { isRelayError } from "../core/errors.ts";
import type { OutboxEvent } from "../core/event.ts";
import { compileTemplate } from "./template.ts";

const event: OutboxEvent = {
  id: "e1",
  type: "order.placed",
  key: null,
  payload: Buffer.alloc(0),
  headers: { tenant: "acme", "{type}": "braces" },
  correlationId: "c1",
  createdAt: "2026-01-02T03:04:05Z",
};
const source = { schema: "orders", table: "outbox" };
const filled = (text: string) => compileTemplate(text)(event, source);

test("A16 a template is filled from the event and its source", () => {
  assert.equal(filled("outbox.{type}"), "outbox.order.placed");
  assert.equal(
    filled("{schema}.{table}/{id}/{correlation_id}/{created_at}"),
    "orders.outbox/e1/c1/2026-01-02T03:04:05Z",
  );
  assert.equal(filled("{header:tenant}-{type}"), "acme-order.placed");
});

test("A16 a value that the event lacks makes the whole text null, unless there is a fallback", () => {
  assert.equal(filled("{key}"), null);
  assert.equal(filled("a.{header:missing}.b"), null);
  assert.equal(filled("{key|none}"), "none");
  assert.equal(filled("{header:missing|}x"), "x");
  assert.equal(filled("{header:constructor}"), null, "only the event's own headers count");
});

test("A16 braces are written twice; values are never read as templates", () => {
  assert.equal(filled("{{type}}"), "{type}");
  assert.equal(filled("{{{type}}}"), "{order.placed}");
  const hostile = { ...event, type: "{id} $& {{key}}" };
  assert.equal(compileTemplate("t-{type}")(hostile, source), "t-{id} $& {{key}}");
});

test("A16 an unknown name or a single brace is refused with the known names", () => {
  assert.throws(() => compileTemplate("{typ}"), /CONFIG_INVALID/);
  assert.throws(() => compileTemplate("{typ}"), /did you mean \{type\}\? Known names: \{id\}/);
  assert.throws(
    () => compileTemplate("{constructor}"),
    (error) => isRelayError(error, "CONFIG_INVALID"),
  );
  for (const text of ["{type", "type}", "{", "{}", "{header:}", "{a{b}}"]) {
    assert.throws(
      () => compileTemplate(text),
      (error) => isRelayError(error, "CONFIG_INVALID"),
      text,
    );
  }
});

test("a text without braces stays as it is, whatever it is", () => {
  fc.assert(
    fc.property(
      fc.string({ unit: "binary" }).map((text) => text.replaceAll(/[{}]/g, "")),
      (text) => {
        assert.equal(filled(text), text);
      },
    ),
  );
});
