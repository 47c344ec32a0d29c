import assert from "node:assert/strict";
import { test } from "node:test";
import type { Row } from "../../postgres/session.ts";
import { COLUMN } from "./event-columns.ts";
import { sortTies, wholeGroups } from "./ties.ts";

/** `id order xmin cmin page item`. */
function row(text: string): Row {
  const [id, order, xmin = "1", cmin = "0", page = "0", item = "1"] = text.split(" ");
  const values: (string | null)[] = new Array(14).fill(null);
  values[COLUMN.id] = id!;
  values[COLUMN.createdAt] = order === "null" ? null : order!;
  values[COLUMN.xmin] = xmin;
  values[COLUMN.cmin] = cmin;
  values[COLUMN.ctid] = `(${page},${item})`;
  return values;
}

const orderOf = (it: Row) => it[COLUMN.createdAt];
const groups = (text: string) => [...text].map((order, index) => row(`${index} ${order}`));
const idsOf = (rows: readonly Row[]) => rows.map((it) => it[COLUMN.id]).join(" ");

test("A3 a page never ends inside a group of equal order that fits a page", () => {
  assert.equal(wholeGroups(groups("aabbc"), 4, false, orderOf), 4);
  assert.equal(wholeGroups(groups("aabbb"), 4, false, orderOf), 2);
  assert.equal(wholeGroups(groups("abcde"), 4, false, orderOf), 4);
  assert.equal(wholeGroups(groups("abbbb"), 4, false, orderOf), 1);
});

test("a group larger than a page goes out as read", () => {
  assert.equal(wholeGroups(groups("aaaaa"), 4, false, orderOf), 4);
  assert.equal(wholeGroups(groups("aa"), 1, false, orderOf), 1);
});

test("at the end everything that fits goes out, but no more than a page", () => {
  assert.equal(wholeGroups(groups("aab"), 4, true, orderOf), 3);
  assert.equal(wholeGroups(groups("aabbb"), 4, true, orderOf), 2);
  assert.equal(wholeGroups([], 4, true, orderOf), 0);
});

test("A3 ties are broken by transaction, command and place in the table, groups stay where they are", () => {
  const rows = ["a 2 7 0 0 9", "b 1 5 3 0 1", "c 1 5 0 10 1", "d 1 5 0 9 10", "e 1 5 0 9 9", "f 1 4 9 0 1"].map(row);
  assert.equal(idsOf(sortTies(rows, orderOf)), "a f e d c b");
});

test("rows without a time are one group", () => {
  const rows = ["a null 3", "b null 2", "c null 1"].map(row);
  assert.equal(idsOf(sortTies(rows, orderOf)), "c b a");
});

test("the numbers of transactions go round", () => {
  const rows = ["young 1 5", "old 1 4294967290"].map(row);
  assert.equal(idsOf(sortTies(rows, orderOf)), "old young");
});
