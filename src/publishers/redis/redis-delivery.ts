import { RelayError } from "../../core/errors.ts";
import type { Message } from "../../core/event.ts";
import { delivered, type Failed, rejected, retry, skipped } from "../../core/outcome.ts";
import type { Report } from "../../ports/publisher.ts";
import type { RedisLink } from "./redis-client.ts";
import type { RedisSettings } from "./redis-config.ts";
import { answerIn, connectionReason, outcomeOf, unreachable } from "./redis-errors.ts";
import { CALL_BYTES_MAX, type Call, type Item, planWave } from "./redis-plan.ts";
import { HEADERS_MAX, scriptArguments } from "./redis-script.ts";

/** One publish: waves of script calls over one connection until every message has its outcome. */
export class Delivery {
  readonly #settings: RedisSettings;
  readonly #link: RedisLink;
  readonly #report: Report;
  readonly #failedKeys = new Map<string, number>();
  #unknown: string | null = null;

  constructor(settings: RedisSettings, link: RedisLink, report: Report) {
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
      this.#failAll(pending, unreachable(this.#settings, error));
      return;
    }
    while (pending.length > 0 && this.#unknown === null) {
      const wave = planWave(pending, this.#failedKeys);
      for (const { index } of wave.skipped) this.#report(index, skipped);
      pending = wave.later;
      if (wave.calls.length > 0) await this.#send(wave.calls);
    }
    // Not sent: after a silence nobody knows whether the server is still there.
    for (const { index } of pending) this.#report(index, skipped);
    if (this.#unknown !== null) throw new RelayError("PUBLISH_UNKNOWN", `${this.#unknown}.`);
  }

  /** What can be sent at all; the rest is rejected. */
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

  /** Returns what the stream has now; reports what failed. */
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

  /** A refusal of the whole call tells which event is meant only when there is just one. */
  #refusal(said: string, { items, bytes, stream }: Call): Failed {
    const outcome = outcomeOf(said, stream);
    // Redis closes the connection after such an answer, and the next publish must not meet it.
    if (said.includes("Protocol error")) this.#link.destroy();
    const isSure = outcome.kind !== "rejected" || (items.length === 1 && bytes > CALL_BYTES_MAX);
    return isSure ? outcome : retry(`stream "${stream}": ${said}`, { scope: "topic" });
  }

  #unanswered({ items, stream }: Call, error: unknown): void {
    const reason = connectionReason(this.#settings, this.#link.explained(error));
    this.#unknown ??= `stream "${stream}": sent, but not answered: ${reason}`;
    for (const item of items) this.#keyFailed(item);
  }

  /** Null when enough replicas have everything; the events are in the stream in any case. */
  async #replicated(): Promise<Failed | "unknown" | null> {
    const { replicas, requestTimeoutMs } = this.#settings;
    try {
      const count = await this.#link.awaitReplicas(replicas, Math.ceil(requestTimeoutMs / 2));
      if (count >= replicas) return null;
      return retry(`${count} of ${replicas} replicas have it: it is sent again`, { scope: "destination" });
    } catch (error) {
      const said = answerIn(error);
      if (said !== null) return retry(`WAIT: ${said}`, { scope: "destination" });
      const reason = connectionReason(this.#settings, this.#link.explained(error));
      this.#unknown ??= `no replica is known to have it: ${reason}`;
      return "unknown";
    }
  }

  #failAll(items: readonly Item[], outcome: Failed): void {
    for (const item of items) this.#fail(item, outcome);
  }

  #fail(item: Item, outcome: Failed): void {
    this.#report(item.index, this.#keyFailed(item) ? outcome : skipped);
  }

  /** False when an earlier message of its key has failed already. */
  #keyFailed({ index, message }: Item): boolean {
    const { key } = message.event;
    if (key === null) return true;
    const failedAt = this.#failedKeys.get(key) ?? index;
    this.#failedKeys.set(key, Math.min(failedAt, index));
    return index <= failedAt;
  }
}

/** Null when the message can become an entry, else what is wrong with it. */
export function faultOf({ event, headers, key, topic }: Message): string | null {
  if (topic === "") return "the stream's name is empty";
  // Half a character has no bytes: it would arrive as another text.
  if (!topic.isWellFormed()) return "the stream's name holds half a character";
  if (!event.id.isWellFormed()) return "the event's id holds half a character";
  if (key !== null && !key.isWellFormed()) return "the key holds half a character";
  let count = 0;
  for (const name in headers) {
    count += 1;
    if (!name.isWellFormed() || !headers[name]!.isWellFormed()) {
      return `the header ${JSON.stringify(name)} holds half a character`;
    }
  }
  return count > HEADERS_MAX ? `there are ${count} headers, ${HEADERS_MAX} are allowed` : null;
}

function bytesOf({ event, headers, key, payload, topic }: Message): number {
  let bytes = payload.length + 2 * event.id.length + topic.length + (key?.length ?? 0);
  for (const name in headers) bytes += name.length + headers[name]!.length;
  return bytes;
}
