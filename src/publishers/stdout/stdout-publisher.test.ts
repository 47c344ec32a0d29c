import assert from "node:assert/strict";
import { Writable } from "node:stream";
import { test } from "node:test";
import { isRelayError } from "../../core/errors.ts";
import type { Message } from "../../core/event.ts";
import type { Outcome } from "../../core/outcome.ts";
import { lineOf, stdoutPublisher } from "./stdout-publisher.ts";

function message(id: string, payload: Buffer = Buffer.from(id)): Message {
  const event = { id, type: "t", key: "k", payload, headers: {}, correlationId: null, createdAt: null };
  return { event, topic: "topic", key: "k", headers: { a: "b" }, payload };
}

/** Accepts a line only on demand, as a slow reader does. */
function slowStream(highWaterMark: number) {
  const taken: string[] = [];
  const waiting: ((error?: Error) => void)[] = [];
  const stream = new Writable({
    highWaterMark,
    write(chunk, _encoding, done) {
      taken.push(String(chunk));
      waiting.push(done);
    },
  });
  return { stream, taken, waiting };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

test("one JSON line per event, the payload as text", () => {
  const line = lineOf(message("1", Buffer.from('{"a": 1.0}\n')));
  assert.equal(line.indexOf("\n"), line.length - 1);
  assert.deepEqual(JSON.parse(line), {
    id: "1",
    type: "t",
    topic: "topic",
    key: "k",
    createdAt: null,
    headers: { a: "b" },
    payload: '{"a": 1.0}\n',
  });
});

test("a payload that is no UTF-8 is written in base64 and says so", () => {
  const { payload, payloadEncoding } = JSON.parse(lineOf(message("1", Buffer.from([0, 255]))));
  assert.deepEqual([payload, payloadEncoding], ["AP8=", "base64"]);
});

test("D4 an event is delivered only after its write's callback, and a full stream is not written to", async () => {
  const { stream, taken, waiting } = slowStream(1);
  const publisher = stdoutPublisher({ stream });
  const reported: number[] = [];
  const publishing = publisher.publish(
    [message("1"), message("2")],
    (index, outcome) => reported.push(outcome.kind === "delivered" ? index : -1),
    new AbortController().signal,
  );
  await settled();
  assert.deepEqual([taken.length, reported], [1, []]);
  assert.equal(stream.writableLength, Buffer.byteLength(taken[0]!), "the second line is not even queued");
  waiting.shift()?.();
  await settled();
  assert.deepEqual([taken.length, reported], [2, [0]]);
  waiting.shift()?.();
  await publishing;
  assert.deepEqual(reported, [0, 1]);
  await publisher.close();
});

test("a reader that went away is an error of the destination, for this batch and the next", async () => {
  const { stream, waiting } = slowStream(10_000);
  const publisher = stdoutPublisher({ stream });
  const outcomes: Outcome[] = [];
  const report = (_index: number, outcome: Outcome) => outcomes.push(outcome);
  const publishing = publisher.publish([message("1"), message("2")], report, new AbortController().signal);
  waiting.shift()?.(Object.assign(new Error("write EPIPE"), { code: "EPIPE" }));
  await publishing;
  await publisher.publish([message("3")], report, new AbortController().signal);
  assert.equal(outcomes.length, 3);
  for (const outcome of outcomes) assert.ok(outcome.kind === "retry" && outcome.scope === "destination");
});

test("an abort ends the wait for a stream that takes nothing", async () => {
  const { stream, waiting } = slowStream(1);
  const abort = new AbortController();
  const publishing = stdoutPublisher({ stream }).publish([message("1")], () => assert.fail("reported"), abort.signal);
  abort.abort();
  await assert.rejects(publishing, (error) => isRelayError(error, "PUBLISH_UNKNOWN"));
  waiting.shift()?.();
  await settled();
});
