import assert from "node:assert/strict";
import { test } from "node:test";
import type { Message } from "../../core/event.ts";
import { BatchLimits, kafkaSettings } from "./kafka-config.ts";
import { CODE } from "./kafka-error-codes.ts";
import { kinds, message, shown } from "./kafka-fixture.test.ts";
import type { ProduceAnswer } from "./kafka-produce.ts";
import { measure } from "./kafka-records.ts";
import { NotSent } from "./transaction-coordinator.ts";
import {
  measureAll,
  outcomesOfRefusals,
  outcomesOfRefusedTopics,
  outcomesOfUnreachable,
  RecordCounts,
} from "./transaction-outcomes.ts";
import type { Refusal } from "./transaction-sender.ts";

const settings = kafkaSettings({ brokers: ["broker:9092"], service: "shop" });
const batch = [message("a1"), message("a2"), message("b1", { topic: "paid" }), message("a3")];

function contextOf() {
  return { settings, limits: new BatchLimits(), counts: new RecordCounts() };
}

/** A broker's answer to all messages of a topic. */
function refusal(topic: string, code: number, faults: ProduceAnswer["faults"] = [], messages = batch): Refusal {
  const items = messages
    .map((it: Message, index) => ({ index, message: it, contentBytes: measure(it) }))
    .filter(({ message: { topic: its } }) => its === topic);
  const answer = { topic, partition: 0, code, message: null, faults };
  return { kind: "refused", batch: { topic, partition: 0, items, bytes: 1_000 }, answer };
}

test("C5 the records that a broker names are at fault, all others are skipped", () => {
  const named = refusal("orders", CODE.INVALID_RECORD, [{ at: 1, message: "no key" }]);
  const outcomes = outcomesOfRefusals(batch, [named], contextOf());
  assert.deepEqual(kinds(outcomes), ["skipped", "rejected event", "skipped", "skipped"]);
  assert.match(shown(outcomes)[1]!, /no key/);
});

test("the only record of a batch is at fault when the batch is refused", () => {
  for (const code of [CODE.MESSAGE_TOO_LARGE, CODE.RECORD_LIST_TOO_LARGE, CODE.INVALID_RECORD]) {
    const outcomes = outcomesOfRefusals(batch, [refusal("paid", code)], contextOf());
    assert.deepEqual(kinds(outcomes), ["skipped", "skipped", "rejected event", "skipped"]);
  }
});

test("if the broker names none of several records, none is blamed and the next batches are smaller", () => {
  const context = contextOf();
  assert.deepEqual(
    new Set(kinds(outcomesOfRefusals(batch, [refusal("orders", CODE.MESSAGE_TOO_LARGE)], context))),
    new Set(["skipped"]),
  );
  assert.equal(context.limits.of("orders"), 500);
  assert.deepEqual(
    new Set(kinds(outcomesOfRefusals(batch, [refusal("orders", CODE.INVALID_RECORD)], context))),
    new Set(["skipped"]),
  );
  assert.equal(context.counts.of("orders", 0), 2);
  assert.equal(context.counts.of("orders", 1), Number.POSITIVE_INFINITY);
  const alone = [message("a1")];
  outcomesOfRefusals(alone, [refusal("orders", CODE.INVALID_RECORD, [], alone)], context);
  assert.equal(context.counts.of("orders", 0), Number.POSITIVE_INFINITY);
});

test("F4 events wait for a topic that is at fault, and no attempts are spent", () => {
  for (const code of [CODE.TOPIC_AUTHORIZATION_FAILED, CODE.UNKNOWN_TOPIC_OR_PARTITION, CODE.NOT_LEADER_OR_FOLLOWER]) {
    const outcomes = outcomesOfRefusals(batch, [refusal("paid", code)], contextOf());
    assert.deepEqual(kinds(outcomes), ["skipped", "skipped", "retry topic", "skipped"]);
  }
  const unsent: Refusal = { kind: "unsent", batch: refusal("paid", 0).batch, error: new Error("refused") };
  assert.deepEqual(kinds(outcomesOfRefusals(batch, [unsent], contextOf()))[2], "retry topic");
});

test("B4 a producer that is fenced, timed out or forgotten is no fault of a message", () => {
  for (const code of [
    CODE.INVALID_PRODUCER_EPOCH,
    CODE.PRODUCER_FENCED,
    CODE.INVALID_TXN_STATE,
    CODE.INVALID_PRODUCER_ID_MAPPING,
    CODE.OUT_OF_ORDER_SEQUENCE_NUMBER,
    CODE.TRANSACTION_ABORTABLE,
  ]) {
    assert.throws(() => outcomesOfRefusals(batch, [refusal("orders", code)], contextOf()), /\(\d+\)/);
    const ofLedger = refusal("orders", code);
    const moved = { ...ofLedger, batch: { ...ofLedger.batch, topic: settings.ledger.topic } } as Refusal;
    assert.throws(() => outcomesOfRefusals(batch, [moved], contextOf()), /\(\d+\)/);
  }
});

test("A2 a ledger that refuses its note blames no event: the relay waits for it, or reports what to do", () => {
  const ofLedger = (code: number): Refusal => {
    const answer = { topic: settings.ledger.topic, partition: 0, code, message: null, faults: [] };
    const items = [{ index: -1, message: message("note"), contentBytes: 5_000_000 }];
    return { kind: "refused", batch: { topic: settings.ledger.topic, partition: 0, items, bytes: 5_000_000 }, answer };
  };
  const moving = outcomesOfRefusals(batch, [ofLedger(CODE.NOT_LEADER_OR_FOLLOWER)], contextOf());
  assert.deepEqual(new Set(kinds(moving)), new Set(["retry destination"]));
  assert.throws(() => outcomesOfRefusals(batch, [ofLedger(CODE.MESSAGE_TOO_LARGE)], contextOf()), {
    code: "LEDGER_UNFIT",
    message: /max\.message\.bytes/,
  });
  assert.throws(() => outcomesOfRefusals(batch, [ofLedger(CODE.TOPIC_AUTHORIZATION_FAILED)], contextOf()), {
    code: "TRANSACTIONS_REFUSED",
  });
});

test("topics that the coordinator refuses wait, unless it is the ledger", () => {
  const codes = new Map<string, number>([["paid", CODE.UNKNOWN_TOPIC_OR_PARTITION]]);
  assert.deepEqual(kinds(outcomesOfRefusedTopics(batch, codes, settings)), [
    "skipped",
    "skipped",
    "retry topic",
    "skipped",
  ]);
  const gone = new Map<string, number>([[settings.ledger.topic, CODE.UNKNOWN_TOPIC_OR_PARTITION]]);
  assert.throws(() => outcomesOfRefusedTopics(batch, gone, settings), { code: "LEDGER_UNFIT" });
});

test("when no broker can be reached, the reason names the broker that was tried", () => {
  const silence = new NotSent({ host: "other", port: 9 }, Object.assign(new Error("x"), { code: "ECONNREFUSED" }));
  const outcomes = outcomesOfUnreachable(batch, settings, silence);
  assert.deepEqual(new Set(kinds(outcomes)), new Set(["retry destination"]));
  assert.match(shown(outcomes)[0]!, /other:9: connection refused/);
});

test("C5 all messages that can be known to be refused are named at once", () => {
  const mixed = [message("a1"), message("b1", { topic: "bad topic" }), message("c1"), message("d1", { key: "\ud800" })];
  const { outcomes } = measureAll(mixed, settings);
  assert.deepEqual(kinds(outcomes!), ["skipped", "rejected event", "skipped", "rejected event"]);
  assert.equal(measureAll(batch, settings).outcomes, null);
});
