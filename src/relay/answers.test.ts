import assert from "node:assert/strict";
import { test } from "node:test";
import { until } from "../../test/servers/until.ts";
import { countIn } from "../core/answer-histogram.ts";
import { AnswerBook } from "../core/answer-times.ts";
import { systemClock } from "../core/clock.ts";
import { retry } from "../core/outcome.ts";
import { scheduledRetry } from "../core/retry-policy.ts";
import type { Publisher } from "../ports/publisher.ts";
import { memoryPublisher } from "../publishers/memory/memory-publisher.ts";
import { memorySource } from "../sources/memory/memory-source.ts";
import { createRelay } from "./relay.ts";

const TIMING = { pollIntervalMs: 20, balanceMs: 20, circuitInitialMs: 20, circuitMaxMs: 100 };

function stage(publisher: Publisher) {
  const source = memorySource();
  const answers = new AnswerBook(systemClock);
  const routes = [{ destination: "out" as const, retry: scheduledRetry([5, 5, 5]) }];
  const parts = { sources: [source], destinations: { out: publisher }, routes, timing: TIMING, lanes: 1 };
  const write = (id: string) => source.insert({ id, type: "t", key: id, payload: "{}" });
  const counted = () => countIn(answers.of("out").totals.counts);
  return { source, relay: createRelay({ ...parts, answers }), answers, write, counted };
}

test("H1 each publish of new events is one answer, and publishes of failed or replayed events are none", async () => {
  const publisher = memoryPublisher();
  const { counted, relay, source, write } = stage(publisher);
  await using _ = relay;
  let isBad = true;
  publisher.respond(() => (isBad ? retry("not now") : { kind: "delivered" }));
  let dead = 0;
  relay.on("IntentDeadLettered", () => {
    dead += 1;
  });
  write("a");
  await relay.start();
  await until("it is dead", () => dead === 1);
  assert.equal(counted(), 1, "its retries measure the event, not the destination");
  isBad = false;
  source.replay("a");
  await until("it is delivered", () => publisher.delivered.length === 1);
  assert.equal(counted(), 1, "and so does its replay");
  write("b");
  await until("another one is delivered", () => publisher.delivered.length === 2);
  await until("its answer is counted", () => counted() === 2);
});

test("H1 an unreachable destination has no answers", async () => {
  const publisher = memoryPublisher();
  const { counted, relay, write } = stage(publisher);
  await using _ = relay;
  let asked = 0;
  publisher.respond(() => {
    asked += 1;
    return asked < 5 ? retry("refused", { scope: "destination" }) : { kind: "delivered" };
  });
  write("a");
  await relay.start();
  await until("it is delivered", () => publisher.delivered.length === 1);
  assert.equal(counted(), 0);
  write("b");
  await until("the answer of another one is counted", () => counted() === 1);
});

test("H1 a publisher that times its requests is measured per request, not per publish", async () => {
  const inner = memoryPublisher();
  const publisher: Publisher = {
    ...{ name: "out", transactions: undefined as never, close: () => inner.close() },
    capabilities: { ...inner.capabilities, timesRequests: true },
    async publish(batch, report, signal, timer) {
      for (const isAnswered of [true, true, false]) timer?.()(isAnswered);
      await inner.publish(batch, report, signal);
    },
  };
  const { answers, counted, relay, write } = stage(publisher);
  await using _ = relay;
  write("a");
  await relay.start();
  await until("it is delivered", () => inner.delivered.length === 1);
  assert.equal(counted(), 2);
  assert.equal(answers.figuresOf("out")?.lastMinute.requests, 2);
});
