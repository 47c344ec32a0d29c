import assert from "node:assert/strict";
import { test } from "node:test";
import type { EventRow } from "../../kit/types.ts";
import { csvText, jsonText } from "./export-text.ts";
import { withTailed } from "./tail-rows.ts";

function row(id: string, more: Partial<EventRow> = {}): EventRow {
  return {
    source: "shop.outbox",
    id,
    type: "order.placed",
    key: null,
    correlationId: null,
    createdAt: null,
    state: "pending",
    attempts: null,
    reason: null,
    nextAttemptAt: null,
    parkedBehind: null,
    ...more,
  };
}

const shown = (rows: readonly EventRow[]) => rows.map(({ id, state }) => `${id} ${state}`);

test("F3 a tail puts new events in front and changes the others where they stand", () => {
  const rows = withTailed(
    [row("2"), row("1")],
    [
      { what: "new", event: row("3") },
      { what: "new", event: row("4") },
      { what: "changed", event: row("1", { state: "delivered" }) },
      { what: "changed", event: row("3", { state: "dead" }) },
      { what: "changed", event: row("0", { state: "delivered" }) },
      { what: "new", event: row("2", { state: "retrying" }) },
    ],
  );
  assert.deepEqual(shown(rows), ["4 pending", "3 dead", "2 retrying", "1 delivered"]);
});

test("F3 a tail that runs for long keeps the newest rows alone, and events of other sources apart", () => {
  const many = Array.from({ length: 1_000 }, (_, at) => ({ what: "new" as const, event: row(String(at)) }));
  const rows = withTailed([row("old")], many);
  assert.equal(rows.length, 300);
  assert.equal(rows[0]?.id, "999");
  assert.equal(withTailed([row("1")], [{ what: "new", event: row("1", { source: "other.outbox" }) }]).length, 2);
});

test("F3 exports keep every value as text, and no spreadsheet runs one", () => {
  const rows = [row("12345678901234567890", { key: '=HYPERLINK("http://x")', reason: "a\nb, c", attempts: 3 })];
  const [head = "", line = ""] = csvText(rows).split("\r\n");
  assert.match(head, /^source,id,type,key/);
  assert.equal(
    line,
    `shop.outbox,12345678901234567890,order.placed,"'=HYPERLINK(""http://x"")",,,pending,3,"a\nb, c",,`,
  );
  assert.deepEqual(JSON.parse(jsonText(rows)), rows);
});
