import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { systemClock, systemRandom } from "../core/clock.ts";
import { delivered, type Outcome, rejected, retry, skipped } from "../core/outcome.ts";
import { RETRY_PRESETS } from "../core/retry-policy.ts";
import { recordOf } from "../dynamodb/intent-item.ts";
import type { IntentRecord } from "../dynamodb/intent-record.ts";
import type { Publisher } from "../ports/publisher.ts";
import { intentRoute } from "../routing/intent-relay.ts";
import { IntentDelivery } from "./intent-delivery.ts";
import { IntentReports } from "./intent-reports.ts";
import { TimeLeft } from "./time-left.ts";

function intent(id: string, key: string | null = null): IntentRecord {
  const payload = { type: { S: "Notify" }, payload: { S: "{}" } };
  return recordOf({ id: { S: id }, intent: { M: payload }, ...(key === null ? {} : { key: { S: key } }) });
}

/** A delivery to a scripted publisher, with what was sent and recorded. */
function stage(
  answer: (id: string, round: number) => Outcome | null | "never",
  keyOrderInBatch: boolean,
  publishMs = 1_000,
) {
  const sent: string[][] = [];
  const settled: [id: string, what: string][] = [];
  const publisher: Publisher = {
    name: "fake",
    capabilities: { keyOrderInBatch, deduplicates: false },
    async publish(batch, report) {
      sent.push(batch.map(({ event }) => event.id));
      let silent = 0;
      for (const [index, { event }] of batch.entries()) {
        const outcome = answer(event.id, sent.length);
        if (outcome === "never") return await new Promise(() => {});
        if (outcome === null) silent += 1;
        else report(index, outcome);
      }
      if (silent > 0) throw new Error("the connection broke");
    },
    close: async () => {},
  };
  const write = (what: string) => async (record: IntentRecord | string) => {
    settled.push([typeof record === "string" ? record : record.id, what]);
    return "written" as const;
  };
  const reports = new IntentReports({
    intentType: "Notify",
    pipeline: "outbox->fake",
    target: "fake",
    clock: systemClock,
    secrets: [],
    report: () => {},
  });
  const relay = { type: "Notify", target: { destination: "fake" }, translate: () => ({ body: "x" }) };
  const delivery = new IntentDelivery({
    outbox: { markDelivered: write("delivered"), recordFailure: write("failed"), deadLetter: write("dead") },
    route: intentRoute(relay, "fake"),
    retry: RETRY_PRESETS.intent,
    publisher: async () => publisher,
    batchSize: 3,
    reports,
    clock: systemClock,
    random: systemRandom,
  });
  const time = new TimeLeft(systemClock, { getRemainingTimeInMillis: () => 60_000 }, publishMs);
  return { sent, settled, deliver: (records: readonly IntentRecord[]) => delivery.deliver(records, time) };
}

const isDone = { unsettled: new Set(), untried: new Set() };

describe("the rounds of a delivery", () => {
  test("F2 where a destination takes the next of a key all the same, one of each key goes at a time", async () => {
    const records = ["a1", "a2", "b1", "a3", "c1"].map((id) => intent(id, id[0]));
    const { deliver, sent, settled } = stage((id) => (id === "a1" ? retry("x") : delivered), false);
    assert.deepEqual(await deliver([...records, intent("free")]), isDone);
    assert.deepEqual(sent, [["a1", "b1", "c1"], ["a2", "free"], ["a3"]]);
    assert.equal(settled.length, 6);
  });

  test("F2 what was skipped behind a failed one of its key goes in the next round, in its order", async () => {
    const answer = (id: string, round: number) => {
      if (round > 1) return delivered;
      return id === "k1" ? retry("x") : skipped;
    };
    const { deliver, sent, settled } = stage(answer, true);
    assert.deepEqual(await deliver(["k1", "k2", "k3", "k4"].map((id) => intent(id, "k"))), isDone);
    assert.deepEqual(sent, [
      ["k1", "k2", "k3"],
      ["k2", "k3", "k4"],
    ]);
    assert.deepEqual(settled[0], ["k1", "failed"]);
  });

  test("D5 what the destination said nothing of counts as failed; what it said before holds", async () => {
    const { deliver, settled } = stage((id) => (id === "a" ? delivered : null), true);
    assert.deepEqual(await deliver([intent("a"), intent("b")]), isDone);
    assert.deepEqual(settled, [
      ["a", "delivered"],
      ["b", "failed"],
    ]);
  });

  test("D5 a refusal for good is a dead letter at the first attempt, an exhausted schedule at the fourth", async () => {
    const { deliver, settled } = stage((id) => (id === "bad" ? rejected("x") : retry("x")), true);
    await deliver([intent("bad"), { ...intent("third"), attemptCount: 2 }, { ...intent("fourth"), attemptCount: 3 }]);
    assert.deepEqual(
      new Map(settled),
      new Map([
        ["bad", "dead"],
        ["third", "failed"],
        ["fourth", "dead"],
      ]),
    );
  });

  test("D5 a publisher that ignores the abort is not waited for", async () => {
    const { deliver, settled } = stage((id) => (id === "a" ? delivered : "never"), true, 100);
    assert.deepEqual(await deliver([intent("a"), intent("b")]), isDone);
    assert.deepEqual(
      new Map(settled),
      new Map([
        ["a", "delivered"],
        ["b", "failed"],
      ]),
    );
  });

  test("D4 a destination that takes nothing and refuses nothing does not hold the function for ever", async () => {
    const { deliver, sent, settled } = stage(() => skipped, true);
    assert.deepEqual(await deliver([intent("a")]), { unsettled: new Set(), untried: new Set(["a"]) });
    assert.deepEqual([sent.length, settled], [3, []]);
  });
});
