import { unreachable } from "../../core/connection-cause.ts";
import { RelayError } from "../../core/errors.ts";
import type { Message } from "../../core/event.ts";
import { delivered, type Failed, rejected, retry, skipped } from "../../core/outcome.ts";
import { answerIn } from "../../core/redis-errors.ts";
import type { Report } from "../../ports/publisher.ts";
import type { StreamLink } from "./redis-client.ts";
import type { RedisSettings } from "./redis-config.ts";
import { connectionReason, outcomeOf } from "./redis-errors.ts";
import { CALL_BYTES_MAX, type Call, type Item, planWave } from "./redis-plan.ts";
import { HEADERS_MAX, scriptArguments } from "./redis-script.ts";

/** One publish: waves of script calls over one connection until every message has its outcome. */
export class Delivery {
  readonly #settings: RedisSettings;
  readonly #link: StreamLink;
  readonly #report: Report;
  readonly #failedKeys = new Map<string, number>();
  #unknown: string | null = null;

  constructor(settings: RedisSettings, link: StreamLink, report: Report) {
    this.#settings = settings;
    this.#link = link;
    this.#report = report;
  }

  /** Rejects with PUBLISH_UNKNOWN when some messages got no answer; those are not reported. */
  async run(batch: readonly Message[]): Promise<void> {
    let pending: readonly Item[] = this.#legal(batch);
    if (pending.length === 0) return;
    try {
      await this.#link.open();
    } catch (error) {
      this.#failAll(pending, unreachable(connectionReason(this.#settings, error), error));
      return;
    }
    while (pending.length > 0 && this.#unknown === null) {
      const wave = planWave(pending, this.#failedKeys);
      for (const { index } of wave.skipped) this.#report(index, skipped);
      pending = wave.later;
      if (wave.calls.length > 0) await this.#send(wave.calls);
    }
    // Not sent: after an unanswered call the server may be gone.
    for (const { index } of pending) this.#report(index, skipped);
    if (this.#unknown !== null) throw new RelayError("PUBLISH_UNKNOWN", `${this.#unknown}.`);
  }

  /** Returns the messages that can be sent; rejects the others. */
  #legal(batch: readonly Message[]): Item[] {
    const items: Item[] = [];
    for (const [index, message] of batch.entries()) {
      const item = { index, message, bytes: bytesOf(message) };
      const fault = faultOf(message);
      if (fault === null) items.push(item);
      else this.#fail(item, rejected(fault));
    }
    return items;
  }

  async #send(calls: readonly Call[]): Promise<void> {
    const added = (await Promise.all(calls.map((call) => this.#run(call)))).flat();
    const failure = this.#settings.replicas === 0 || added.length === 0 ? null : await this.#replicated();
    for (const item of added) {
      if (failure === "unknown") this.#keyFailed(item);
      else if (failure === null) this.#report(item.index, delivered);
      else this.#fail(item, failure);
    }
  }

  /** Returns the items that the stream has now; reports the failed ones. */
  async #run(call: Call): Promise<readonly Item[]> {
    const { items, stream } = call;
    try {
      const answer = await this.#link.runScript(scriptArguments(call, this.#settings));
      if (!Array.isArray(answer)) return items;
      const [done, said] = answer as [number, string];
      this.#failAll(items.slice(done), outcomeOf(said, stream));
      return items.slice(0, done);
    } catch (error) {
      const said = answerIn(error);
      if (said === null) this.#unanswered(call, error);
      else this.#failAll(items, this.#refusal(said, call));
      return [];
    }
  }

  /** The outcome of a refused call. It blames an event only if the call holds a single one. */
  #refusal(said: string, { items, bytes, stream }: Call): Failed {
    const outcome = outcomeOf(said, stream);
    // Redis closes the connection after such an answer, so the next publish must not use it.
    if (said.includes("Protocol error")) this.#link.destroy();
    const isSure = outcome.kind !== "rejected" || (items.length === 1 && bytes > CALL_BYTES_MAX);
    return isSure ? outcome : retry(`stream "${stream}": ${said}`, { scope: "topic" });
  }

  #unanswered({ items, stream }: Call, error: unknown): void {
    const reason = connectionReason(this.#settings, this.#link.explained(error));
    this.#unknown ??= `stream "${stream}": sent, but no response: ${reason}`;
    for (const item of items) this.#keyFailed(item);
  }

  /** Null when enough replicas have all events. The events are in the stream in any case. */
  async #replicated(): Promise<Failed | "unknown" | null> {
    const { replicas, requestTimeoutMs } = this.#settings;
    try {
      const count = await this.#link.awaitReplicas(replicas, Math.ceil(requestTimeoutMs / 2));
      if (count >= replicas) return null;
      return retry(`only ${count} of ${replicas} replicas have the event: it is sent again`, { scope: "destination" });
    } catch (error) {
      const said = answerIn(error);
      if (said !== null) return retry(`WAIT: ${said}`, { scope: "destination" });
      const reason = connectionReason(this.#settings, this.#link.explained(error));
      this.#unknown ??= `no response to WAIT, so the replicas' state is unknown: ${reason}`;
      return "unknown";
    }
  }

  #failAll(items: readonly Item[], outcome: Failed): void {
    for (const item of items) this.#fail(item, outcome);
  }

  #fail(item: Item, outcome: Failed): void {
    this.#report(item.index, this.#keyFailed(item) ? outcome : skipped);
  }

  /** Marks the item's key as failed. False when an earlier message of the key has failed already. */
  #keyFailed({ index, message }: Item): boolean {
    const { key } = message.event;
    if (key === null) return true;
    const failedAt = this.#failedKeys.get(key) ?? index;
    this.#failedKeys.set(key, Math.min(failedAt, index));
    return index <= failedAt;
  }
}

/** Null when the message can become a stream entry, else what is wrong with it. */
export function faultOf({ event, headers, key, topic }: Message): string | null {
  if (topic === "") return "the stream's name is empty";
  // A lone surrogate has no UTF-8 encoding and would arrive as another character.
  if (!topic.isWellFormed()) return "the stream's name contains half a character (a lone surrogate)";
  if (!event.id.isWellFormed()) return "the event's id contains half a character (a lone surrogate)";
  if (key !== null && !key.isWellFormed()) return "the key contains half a character (a lone surrogate)";
  let count = 0;
  for (const name in headers) {
    count += 1;
    if (!name.isWellFormed() || !headers[name]!.isWellFormed()) {
      return `the header ${JSON.stringify(name)} contains half a character (a lone surrogate)`;
    }
  }
  return count > HEADERS_MAX ? `the event has ${count} headers, but ${HEADERS_MAX} are allowed` : null;
}

function bytesOf({ event, headers, key, payload, topic }: Message): number {
  let bytes = payload.length + 2 * event.id.length + topic.length + (key?.length ?? 0);
  for (const name in headers) bytes += name.length + headers[name]!.length;
  return bytes;
}
