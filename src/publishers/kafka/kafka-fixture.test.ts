import assert from "node:assert/strict";
import { test } from "node:test";
import type { KafkaServer } from "../../../test/servers/kafka.ts";
import { headerText, readTopic } from "../../../test/servers/kafka-reader.ts";
import type { EventHeaders, Message } from "../../core/event.ts";
import type { Outcome } from "../../core/outcome.ts";
import type { Publisher } from "../../ports/publisher.ts";
import { type KafkaPublisherOptions, kafkaPublisher } from "./kafka-publisher.ts";

export interface MessageParts {
  readonly topic?: string;
  /** The route's key; without it the event's own. */
  readonly key?: string | null;
  readonly payload?: Buffer;
  readonly headers?: EventHeaders;
}

/** `message("a1")` is of key `a`, `message("-1")` has none. */
export function message(id: string, parts: MessageParts = {}): Message {
  const letters = id.replace(/\d+$/, "");
  const own = letters === "-" ? null : letters;
  const { topic = "orders", key = own, payload = Buffer.from(id), headers = {} } = parts;
  const event = { id, type: topic, key: own, payload, headers: {}, correlationId: null, createdAt: null };
  return { event, topic, key, headers: { ...headers, "event-id": id }, payload };
}

/** Publishers on the broker of a file, which are closed together. */
export function publishersOn(kafka: () => KafkaServer) {
  const opened: Publisher[] = [];
  return {
    open(options: Partial<KafkaPublisherOptions> = {}): Publisher {
      const made = kafkaPublisher({ brokers: [kafka().brokers], delivery: "at-least-once", ...options });
      opened.push(made);
      return made;
    },
    async closeAll(): Promise<void> {
      await Promise.all(opened.map((it) => it.close()));
    },
    /** What a reader past any proxy sees. */
    async idsIn(topic: string): Promise<string> {
      const records = await readTopic(kafka().directBrokers, topic);
      return records.map((record) => headerText(record, "event-id")).join(" ");
    },
  };
}

/** The outcomes by index; what was not reported stays empty. Rejects when the publisher does. */
export async function publish(
  publisher: Publisher,
  batch: readonly Message[],
  signal: AbortSignal = new AbortController().signal,
): Promise<Outcome[]> {
  const { outcomes, report } = collector(batch.length);
  await publisher.publish(batch, report, signal);
  return outcomes;
}

function collector(count: number) {
  const outcomes: Outcome[] = Array(count);
  const report = (index: number, outcome: Outcome): void => {
    outcomes[index] = outcome;
  };
  return { outcomes, report };
}

/** What was reported, also when the publish was rejected afterwards. */
export async function attempt(publisher: Publisher, batch: readonly Message[], timeoutMs = 5_000): Promise<Outcome[]> {
  const { outcomes, report } = collector(batch.length);
  await publisher.publish(batch, report, AbortSignal.timeout(timeoutMs)).catch(() => {});
  return outcomes;
}

/** `delivered`, `skipped`, `retry topic: why`. */
export function shown(outcomes: readonly Outcome[]): string[] {
  return outcomes.map((it) => ("reason" in it ? `${it.kind} ${it.scope}: ${it.reason}` : it.kind));
}

/** The outcomes without their reasons. */
export function kinds(outcomes: readonly Outcome[]): string[] {
  return shown(outcomes).map((text) => text.replace(/:.*$/s, ""));
}

export async function deliver(publisher: Publisher, batch: readonly Message[]): Promise<void> {
  const outcomes = await publish(publisher, batch);
  assert.deepEqual(new Set(shown(outcomes)), new Set(["delivered"]));
}

test("a message of the fixture says its key in its id", () => {
  assert.deepEqual([message("a1").key, message("-1").event.key, message("a1", { key: "b" }).key], ["a", null, "b"]);
});
