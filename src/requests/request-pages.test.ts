import assert from "node:assert/strict";
import { test } from "node:test";
import type { LogItem } from "../ports/event-log.ts";
import { readAhead } from "./request-pages.ts";

const pageAt = (position: number): LogItem[] => [{ kind: "passed", position: String(position) }];

/** This many pages, then an error; `read` lists which were requested. */
function pagesUntil(count: number, read: number[]) {
  return (async function* () {
    for (let number = 1; number <= count; number += 1) {
      read.push(number);
      yield pageAt(number);
    }
    throw new Error("the log is gone");
  })();
}

test("E1 the next page is read when there is time or it is asked for, in order, and an error comes behind the last", async () => {
  const read: number[] = [];
  const taken: string[] = [];
  const over = new AbortController();
  const all = async () => {
    for await (const { page, prefetch } of readAhead(pagesUntil(3, read), over)) {
      const number = Number((page[0] as { readonly position: string }).position);
      assert.equal(read.at(-1), number, "nothing is read ahead by itself");
      if (number === 2) {
        prefetch();
        prefetch();
        assert.deepEqual(read, [1, 2, 3], "one page ahead and no more");
      }
      taken.push(String(number));
    }
  };
  await assert.rejects(all, /the log is gone/);
  assert.deepEqual(taken, ["1", "2", "3"]);
  assert.ok(over.signal.aborted);
});

test("E1 a consumer that stops while it waits for a page ends the reading, and no error is left unhandled", async () => {
  const over = new AbortController();
  let isClosed = false;
  const pages = (async function* () {
    try {
      yield pageAt(1);
      await new Promise<void>((resolve) => over.signal.addEventListener("abort", () => resolve()));
      throw new Error("aborted");
    } finally {
      isClosed = true;
    }
  })();
  for await (const { prefetch } of readAhead(pages, over)) {
    prefetch();
    break;
  }
  assert.ok(isClosed);
});
