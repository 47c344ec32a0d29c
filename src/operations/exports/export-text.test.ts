import assert from "node:assert/strict";
import { test } from "node:test";
import type { ListedEvent } from "../events/event-list.ts";
import { EVENT_COLUMNS, type ExportForm, exportText } from "./export-text.ts";

function event(id: string, more: Partial<ListedEvent> = {}): ListedEvent {
  const none = { key: null, correlationId: null, createdAt: null, attempts: null, reason: null, nextAttemptAt: null };
  const waits = { parkedBehind: null, pipeline: null, waitsFor: null };
  return { source: "shop.outbox", id, type: "order.placed", state: "pending", ...none, ...waits, ...more };
}

async function textOf(form: ExportForm, ...pages: (readonly ListedEvent[])[]): Promise<string> {
  const all = (async function* () {
    yield* pages;
  })();
  let text = "";
  for await (const piece of exportText(all, EVENT_COLUMNS, form)) text += piece;
  return text;
}

test("F3 exports keep every value as text, and no spreadsheet runs one as a formula", async () => {
  const more = { key: '=HYPERLINK("http://x")', reason: "a\nb, c", attempts: 3 };
  const [head = "", line = ""] = (await textOf("csv", [event("12345678901234567890", more)])).split("\r\n");
  assert.match(head, /^source,id,type,key/);
  assert.equal(
    line,
    `shop.outbox,12345678901234567890,order.placed,"'=HYPERLINK(""http://x"")",,,pending,3,"a\nb, c",,,,`,
  );
  for (const formula of ["+1", "-1", "@x", "\t=1", " =1", "\n=1", "\uff1d1", "\0=1"])
    assert.match(await textOf("csv", [event("1", { key: formula })]), /,"?'/, JSON.stringify(formula));
});

test("F3 pages become one list, also empty ones", async () => {
  const pages = [[event("1"), event("2")], [], [event("3")]];
  assert.deepEqual(
    JSON.parse(await textOf("json", ...pages)).map(({ id }: ListedEvent) => id),
    ["1", "2", "3"],
  );
  assert.deepEqual(JSON.parse(await textOf("json", [])), []);
  assert.equal((await textOf("ndjson", ...pages)).split("\n").length, 4);
  assert.equal((await textOf("csv", ...pages)).split("\r\n").length, 5);
});
