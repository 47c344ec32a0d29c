import assert from "node:assert/strict";
import { test } from "node:test";
import { isRelayError } from "../core/errors.ts";
import type { Message } from "../core/event.ts";
import type { Outcome } from "../core/outcome.ts";
import { ArrivalBook } from "./arrival-book.ts";
import { DemoDestination } from "./demo-destination.ts";
import { MAIN_DESTINATION, type ToDestination, type ToRelay } from "./destination-wire.ts";
import { wiredPublisher } from "./wired-publisher.ts";

function message(id: string, key: string, payload = "{}"): Message {
  const body = Buffer.from(payload);
  const event = { id, type: "t", key, payload: body, headers: {}, correlationId: null, createdAt: null };
  return { event, topic: "t", key, headers: { "x-source": "a.outbox" }, payload: body };
}

/** Both ends in one process. */
function wired(name: string = MAIN_DESTINATION) {
  const book = new ArrivalBook();
  const destination = new DemoDestination(book);
  const sent: ToDestination[] = [];
  let answer: (message: ToRelay) => void = () => {};
  const publisher = wiredPublisher(name, {
    send: (message) => void sent.push(message),
    onMessage: (listener) => {
      answer = listener;
    },
  });
  const publish = async (batch: readonly Message[], signal = new AbortController().signal) => {
    const outcomes: Outcome[] = [];
    const publishing = publisher.publish(batch, (index, outcome) => (outcomes[index] = outcome), signal);
    const last = sent.at(-1);
    if (last?.kind === "batch") {
      const taken = await destination.take(last.messages, new AbortController().signal);
      answer({ kind: "outcomes", batch: last.batch, outcomes: taken! });
    }
    await publishing;
    return outcomes.map(({ kind }) => kind);
  };
  return { book, destination, publish, publisher, sent };
}

test("F6 a rejected message holds back only the later ones of its key", async () => {
  const { book, publish } = wired();
  const kinds = await publish([
    message("1", "a"),
    message("2", "b", '{"poison":true}'),
    message("3", "b"),
    message("4", "a"),
  ]);
  assert.deepEqual(kinds, ["delivered", "rejected", "skipped", "delivered"]);
  assert.deepEqual([book.total, book.latest[0]?.source], [2, "a.outbox"]);
});

test("F6 a row of a log arrives once at each subscriber; faults apply to the main destination only", async () => {
  const { book, destination, publish } = wired("warehouse");
  destination.faults.down = true;
  assert.deepEqual(await publish([message("1", "a"), message("2", "b", '{"overdrawn":true}')]), [
    "delivered",
    "rejected",
  ]);
  assert.deepEqual([book.total, book.latest[0]?.source], [1, "a.outbox@warehouse"]);
  const weak = wired("search");
  const kinds = await weak.publish(Array.from({ length: 60 }, (_, index) => message(`w${index}`, `key${index}`)));
  assert.equal(kinds.filter((kind) => kind === "retry").length, 2, "one subscriber is never quite well");
});

test("F6 each switch causes its fault", async () => {
  const { destination, publish } = wired();
  destination.faults.down = true;
  assert.deepEqual(await publish([message("1", "a")]), ["retry"]);
  destination.faults.down = false;
  destination.faults.flaky = true;
  const kinds = await publish(Array.from({ length: 30 }, (_, index) => message(`f${index}`, `key${index}`)));
  assert.equal(kinds.filter((kind) => kind === "retry").length, 3);
  destination.faults.flaky = false;
  destination.faults.fixed = true;
  assert.deepEqual(await publish([message("9", "a", '{"poison":true}')]), ["delivered"]);
});

test("F6 an abandoned publish is cancelled at the destination, and its outcome is unknown", async () => {
  const { publisher, sent } = wired();
  const abort = new AbortController();
  const publishing = publisher.publish([message("1", "a")], () => assert.fail("reported"), abort.signal);
  abort.abort();
  await assert.rejects(publishing, (error) => isRelayError(error, "PUBLISH_UNKNOWN"));
  assert.deepEqual(
    sent.map(({ kind }) => kind),
    ["batch", "give up"],
  );
  const late = new AbortController();
  late.abort();
  assert.equal(await new DemoDestination(new ArrivalBook()).take([], late.signal), null);
});
