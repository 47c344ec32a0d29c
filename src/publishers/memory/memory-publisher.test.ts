import assert from "node:assert/strict";
import { test } from "node:test";
import { isRelayError } from "../../core/errors.ts";
import type { Message } from "../../core/event.ts";
import { delivered, type Outcome, rejected, retry } from "../../core/outcome.ts";
import { memoryPublisher } from "./memory-publisher.ts";

function message(id: string, key: string | null = null): Message {
  const payload = Buffer.from(id);
  const event = { id, type: "t", key, payload, headers: {}, correlationId: null, createdAt: null };
  return { event, topic: "t", key, headers: {}, payload };
}

async function publish(publisher: ReturnType<typeof memoryPublisher>, ...batch: Message[]): Promise<string[]> {
  const outcomes: string[] = [];
  const report = (index: number, outcome: Outcome) => {
    outcomes[index] = "reason" in outcome ? `${outcome.kind} ${outcome.scope}: ${outcome.reason}` : outcome.kind;
  };
  await publisher.publish(batch, report, new AbortController().signal);
  return outcomes;
}

function idsOf(messages: readonly Message[]): string[] {
  return messages.map((it) => it.event.id);
}

test("C7 it keeps what it delivered, in order and by key", async () => {
  const publisher = memoryPublisher();
  await publish(publisher, message("1", "a"), message("2", "b"), message("3", "a"), message("4"));
  assert.deepEqual(idsOf(publisher.delivered), ["1", "2", "3", "4"]);
  assert.deepEqual(idsOf(publisher.deliveredOf("a")), ["1", "3"]);
  assert.deepEqual(idsOf(publisher.deliveredOf(null)), ["4"]);
  await publisher.arrived(4);
});

test("a scripted failure keeps the later ones of its key back and nothing else", async () => {
  const publisher = memoryPublisher();
  publisher.failNext(1, retry("no"));
  const outcomes = await publish(publisher, message("1", "a"), message("2", "a"), message("3", "b"), message("4"));
  assert.deepEqual(outcomes, ["retry event: no", "skipped", "delivered", "delivered"]);
  assert.deepEqual(idsOf(publisher.delivered), ["3", "4"]);
});

test("without keyOrderInBatch a failure keeps nothing back", async () => {
  const publisher = memoryPublisher({ keyOrderInBatch: false });
  publisher.failNext(1, rejected("never"));
  assert.deepEqual(await publish(publisher, message("1", "a"), message("2", "a")), [
    "rejected event: never",
    "delivered",
  ]);
});

test("while it is down everything fails with the scope of the destination", async () => {
  const publisher = memoryPublisher();
  publisher.down("refused");
  assert.deepEqual(await publish(publisher, message("1")), ["retry destination: refused"]);
  publisher.up();
  assert.deepEqual(await publish(publisher, message("1")), ["delivered"]);
});

test("a script answers message by message, also later", async () => {
  const publisher = memoryPublisher();
  publisher.respond((it) => (it.event.id === "1" ? Promise.resolve(delivered) : retry("odd", { scope: "topic" })));
  assert.deepEqual(await publish(publisher, message("1"), message("2")), ["delivered", "retry topic: odd"]);
  publisher.respond(null);
  assert.deepEqual(await publish(publisher, message("2")), ["delivered"]);
});

for (const [answer, arrives] of [
  ["hang", []],
  ["unanswered", ["1"]],
] as const) {
  test(`a message answered by "${answer}" is waited for until the signal aborts, then its outcome is unknown`, async () => {
    const publisher = memoryPublisher();
    publisher.respond(() => answer);
    const abort = new AbortController();
    const publishing = publisher.publish([message("1"), message("2")], () => assert.fail("reported"), abort.signal);
    abort.abort();
    await assert.rejects(publishing, (error) => isRelayError(error, "PUBLISH_UNKNOWN"));
    assert.deepEqual(idsOf(publisher.delivered), arrives);
  });
}

test("with deduplicates a second message of the same id is acknowledged and dropped", async () => {
  const publisher = memoryPublisher({ deduplicates: true });
  assert.deepEqual(await publish(publisher, message("1"), message("1")), ["delivered", "delivered"]);
  assert.deepEqual(idsOf(publisher.delivered), ["1"]);
});

test("its latency is slept on the given clock and ends with the signal", async () => {
  const slept: number[] = [];
  const clock = { wallMs: () => 0, monotonicMs: () => 0, sleep: async (ms: number) => void slept.push(ms) };
  const publisher = memoryPublisher({ latencyMs: 40, clock });
  await publish(publisher, message("1"), message("2"));
  assert.deepEqual(slept, [40]);
});

test("after close it takes nothing any more", async () => {
  const publisher = memoryPublisher();
  await publisher.close();
  await assert.rejects(publish(publisher, message("1")), /closed/);
});
