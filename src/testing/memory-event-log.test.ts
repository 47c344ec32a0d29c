import assert from "node:assert/strict";
import { test } from "node:test";
import type { LogItem } from "../ports/event-log.ts";
import { memoryEventLog } from "./memory-event-log.ts";

const event = (id: string) => ({ id, type: "T", data: { id }, metadata: {} });

test("E6 an append needs the expected revision; repeating it with the same ids changes nothing", async () => {
  const log = memoryEventLog();
  assert.equal(await log.append("s", null, [event("a"), event("b")]), 1n);
  await assert.rejects(log.append("s", null, [event("c")]), /\[WRONG_REVISION\]/);
  await assert.rejects(log.append("s", 0n, [event("c")]), /\[WRONG_REVISION\]/);
  await assert.rejects(log.append("t", 0n, [event("c")]), /\[WRONG_REVISION\]/);
  assert.equal(await log.append("s", 1n, [event("c")]), 2n);
  assert.equal(await log.append("s", null, [event("a"), event("b")]), 1n);
  assert.equal(await log.append("s", 1n, [event("c")]), 2n);
  assert.deepEqual(
    (await log.read("s", 1n, 5)).map(({ id }) => id),
    ["b", "c"],
  );
  assert.equal((await log.readLast("s"))!.revision, 2n);
  assert.equal(await log.readLast("t"), null);
  assert.equal(log.events.length, 3);
});

test("E1 a subscription returns existing, then new events of its streams only, and can start after a position", async () => {
  const log = memoryEventLog();
  await log.append("req-1", null, [event("a")]);
  await log.append("other", null, [event("x")]);
  await log.append("req-2", null, [event("b"), event("c")]);
  const ended = new AbortController();
  const seen: LogItem[] = [];
  const place = { streamPrefix: "req-", pageMax: 2, signal: ended.signal };
  for await (const page of log.subscribe({ ...place, from: "beginning" })) {
    assert.ok(page.length <= 2);
    seen.push(...page);
    if (seen.at(-1)!.kind === "caught up") {
      if (log.events.length > 4) ended.abort();
      else queueMicrotask(() => void log.append("req-1", 0n, [event("d")]));
    }
  }
  const shown = seen.map((item) => (item.kind === "event" ? item.event.id : item.kind));
  assert.deepEqual(shown, ["a", "b", "c", "caught up", "d", "caught up"]);
  const after = (seen[1] as { position: string }).position;
  for await (const page of log.subscribe({ ...place, signal: new AbortController().signal, from: { after } })) {
    assert.deepEqual(
      page.map((item) => item.kind === "event" && item.event.id),
      ["c", "d"],
    );
    break;
  }
  const lost = log.subscribe({ ...place, from: { after: "99" }, signal: new AbortController().signal });
  await assert.rejects(lost[Symbol.asyncIterator]().next(), /\[LOG_LOST\]/);
});

test("E6 a log that is set to fail rejects all calls until the failure is removed", async () => {
  const log = memoryEventLog();
  log.fail("server is down");
  await assert.rejects(log.ping(), /server is down \[LOG_UNREACHABLE\]/);
  await assert.rejects(log.append("s", null, [event("a")]), /LOG_UNREACHABLE/);
  log.fail(null);
  assert.equal(await log.append("s", null, [event("a")]), 0n);
});
