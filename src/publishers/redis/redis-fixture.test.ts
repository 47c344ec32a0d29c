import assert from "node:assert/strict";
import { test } from "node:test";
import type { Redis } from "ioredis";
import type { EventHeaders, Message } from "../../core/event.ts";
import type { Outcome } from "../../core/outcome.ts";
import type { Publisher } from "../../ports/publisher.ts";
import type { Received } from "../../testing/contracts/publisher-subject.ts";

/** The fields of all entries of a stream, in their order. */
export async function readEntries(redis: Redis, stream: string): Promise<ReadonlyMap<string, Buffer>[]> {
  const entries = (await redis.callBuffer("XRANGE", stream, "-", "+")) as [Buffer, Buffer[]][];
  return entries.map(([, texts]) => {
    const fields = new Map<string, Buffer>();
    for (let at = 0; at < texts.length; at += 2) fields.set(String(texts[at]), texts[at + 1]!);
    return fields;
  });
}

/** All entries of a stream, as a consumer sees them. */
export async function readStream(redis: Redis, topic: string): Promise<Received[]> {
  return (await readEntries(redis, topic)).map((fields) => {
    const headers = [...fields].filter(([name]) => name.startsWith("h:"));
    return {
      id: String(fields.get("id")),
      topic,
      key: fields.get("partition_key")?.toString() ?? null,
      headers: Object.fromEntries(headers.map(([name, value]) => [name.slice(2), String(value)])),
      payload: fields.get("payload")!,
    };
  });
}

export async function idsIn(redis: Redis, stream: string): Promise<string> {
  return (await readStream(redis, stream)).map(({ id }) => id).join(" ");
}

interface MessageParts {
  readonly payload?: Buffer;
  readonly headers?: EventHeaders;
}

/** `message("a1", "orders")` is of key `a`, `message("-1", "orders")` has none. */
export function message(id: string, topic: string, parts: MessageParts = {}): Message {
  const letters = id.replace(/\d+$/, "");
  const key = letters === "-" ? null : letters;
  const { payload = Buffer.from(id), headers = {} } = parts;
  const event = { id, type: topic, key, payload, headers: {}, correlationId: null, createdAt: null };
  return { event, topic, key, headers: { ...headers, "event-id": id }, payload };
}

/** The outcomes by index. */
export async function publishAll(publisher: Publisher, batch: readonly Message[]): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  const report = (index: number, outcome: Outcome) => {
    outcomes[index] = outcome;
  };
  await publisher.publish(batch, report, AbortSignal.timeout(10_000));
  return outcomes;
}

/** `delivered`, `skipped`, `rejected`, or the scope of a retry. */
export function kinds(outcomes: readonly Outcome[]): string {
  return outcomes.map((it) => (it.kind === "retry" ? it.scope : it.kind)).join(" ");
}

export function reasonIn(outcome: Outcome | undefined): string {
  return outcome !== undefined && "reason" in outcome ? outcome.reason : "";
}

test("a message of the fixture says its key in its id", () => {
  assert.deepEqual([message("a1", "t").key, message("-1", "t").key], ["a", null]);
});
