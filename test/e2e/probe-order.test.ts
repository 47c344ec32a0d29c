import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { delivered, type Outcome, retry } from "../../src/core/outcome.ts";
import { exponentialRetry } from "../../src/core/retry-policy.ts";
import type { Publisher } from "../../src/ports/publisher.ts";
import { createRelay } from "../../src/relay/relay.ts";
import { memorySource } from "../../src/sources/memory/memory-source.ts";
import { until } from "../servers/until.ts";

/** Loses its connection at the first publish; the next one is then the circuit's probe and gets `answer`. */
function publisherWith(answer: Outcome) {
  const sent: string[] = [];
  let publishes = 0;
  const publisher: Publisher = {
    name: "scripted",
    capabilities: { keyOrderInBatch: false, deduplicates: false },
    publish: async (batch, report) => {
      publishes += 1;
      if (publishes === 1) throw new Error("connection lost");
      for (const [index, { event }] of batch.entries()) {
        const isProbe = publishes === 2;
        if (!isProbe) sent.push(event.id);
        report(index, isProbe ? answer : delivered);
      }
    },
    close: async () => {},
  };
  return { publisher, sent };
}

async function sentAfterProbe(answer: Outcome): Promise<string[]> {
  const { publisher, sent } = publisherWith(answer);
  const source = memorySource();
  source.insert({ id: "1", type: "a", key: "k" }, { id: "2", type: "b", key: "k" }, { id: "3", type: "c", key: "k" });
  const routes = [{ destination: "scripted" as const, retry: exponentialRetry({ initialMs: 50 }) }];
  await using relay = createRelay({ sources: [source], destinations: { scripted: publisher }, routes, lanes: 1 });
  await relay.start();
  await until("all events are delivered", () => source.delivered().length === 3);
  return sent;
}

describe("a circuit's probe that fails for its event's sake", () => {
  test("F2 C5: lets no later event of its key go first", async () => {
    assert.deepEqual(await sentAfterProbe(retry("busy")), ["1", "2", "3"]);
  });

  test("F2 C5: lets no later event of its key go first when the topic is missing", async () => {
    assert.deepEqual(await sentAfterProbe(retry("unknown topic", { scope: "topic" })), ["1", "2", "3"]);
  });
});
