import assert from "node:assert/strict";
import { test } from "node:test";
import { BlameTracker } from "./blame.ts";
import type { Message } from "./event.ts";

const bad = { pipeline: "p", id: "bad" };
const other = (number: number) => ({ pipeline: "p", id: `e${number}` });

function messageOf(id: string, topic: string): Message {
  const [headers, payload] = [{}, Buffer.alloc(0)];
  const event = { id, type: "t", key: null, payload, headers, correlationId: null, createdAt: null };
  return { event, topic, key: null, headers, payload };
}

function deliver(book: BlameTracker, count: number, topic = "t"): void {
  const messages = Array.from({ length: count }, (_, i) => messageOf(other(i).id, topic));
  book.delivered("p", messages);
}

test("H1 an event that fails with the destination while others are delivered is a suspect, then fails as an event", () => {
  const book = new BlameTracker();
  const blames = [1, 2, 3, 4, 5].map(() => {
    const blame = book.failed(bad, null);
    deliver(book, 1);
    return blame;
  });
  assert.deepEqual(blames, ["everyone", "suspect", "suspect", "event", "event"]);
});

test("H1 no event is at fault for an outage, a rate limit or a destination that fails at random", () => {
  const book = new BlameTracker();
  for (let round = 0; round < 20; round += 1) {
    assert.equal(book.failed(bad, null), "everyone");
    // Nine of ten are delivered, and the tenth fails as well.
    deliver(book, 9);
    book.failed(other(100 + round), null);
  }
});

test("H1 after an outage in between, a suspect is no suspect any more", () => {
  const book = new BlameTracker();
  book.failed(bad, null);
  deliver(book, 5);
  assert.equal(book.failed(bad, null), "suspect");
  book.failed(other(1), null);
  assert.equal(book.failed(bad, null), "everyone");
});

test("H1 failures of other suspects say nothing about the destination", () => {
  const book = new BlameTracker();
  const blames: string[] = [];
  for (let round = 0; round < 5; round += 1) {
    for (let i = 0; i < 20; i += 1) blames[i] = book.failed({ pipeline: "p", id: `bad${i}` }, null);
    deliver(book, 250);
  }
  assert.deepEqual(new Set(blames), new Set(["event"]));
});

test("H1 deliveries to another topic say nothing about this one", () => {
  const book = new BlameTracker();
  for (let round = 0; round < 5; round += 1) {
    assert.equal(book.failed(bad, "mine"), "everyone");
    deliver(book, 5, "other");
  }
  deliver(book, 1, "mine");
  assert.equal(book.failed(bad, "mine"), "suspect");
});

test("H1 a delivered event is no suspect any more, and the same id of another pipeline is another event", () => {
  const book = new BlameTracker();
  book.failed(bad, null);
  deliver(book, 2);
  assert.equal(book.failed({ ...bad, pipeline: "q" }, null), "everyone");
  book.delivered(bad.pipeline, [messageOf(bad.id, "t")]);
  assert.deepEqual([book.hasFailed(bad), book.failed(bad, null)], [false, "everyone"]);
});

test("H1 an event is isolated once others were delivered between two of its failures", () => {
  const book = new BlameTracker();
  book.failed(bad, null);
  book.failed(bad, null);
  assert.equal(book.shouldIsolate(bad), false);
  deliver(book, 1);
  for (let i = 0; i < 50; i += 1) book.failed(other(i), null);
  assert.deepEqual([book.failed(bad, null), book.shouldIsolate(bad)], ["everyone", true]);
});
