import { RelayError } from "../../core/errors.ts";
import type { Message } from "../../core/event.ts";
import { type Outcome, rejected, type Scope, skipped } from "../../core/outcome.ts";
import type { Publisher, Report } from "../../ports/publisher.ts";
import { type HttpPlace, type HttpPublisherOptions, type HttpSettings, httpSettings, placeOf } from "./http-config.ts";
import { type Answer, outcomeOf, UNKNOWN } from "./http-errors.ts";
import { Exchanges, type HttpRequest } from "./http-exchange.ts";
import { checkHost, ForbiddenHost } from "./http-guard.ts";
import { requestHeaders } from "./http-headers.ts";
import { Origins } from "./http-origins.ts";
import { signatureHeaders } from "./http-signature.ts";

export type { HttpPublisherOptions, HttpTarget, HttpTls } from "./http-config.ts";

/** Delivers to an HTTP endpoint: one event becomes one request. Opens no connection before the first publish. */
export function httpPublisher(options: HttpPublisherOptions): Publisher {
  const settings = httpSettings(options);
  const origins = new Origins(settings);
  return {
    name: settings.name,
    capabilities: { keyOrderInBatch: true, deduplicates: false },
    publish: (batch, report, signal) => new Publishing(settings, origins, batch, report, signal).run(),
    close: () => origins.close(),
  };
}

/** One publish: the events of a key one after another, the keys beside each other. */
class Publishing {
  readonly #settings: HttpSettings;
  readonly #origins: Origins;
  readonly #batch: readonly Message[];
  readonly #report: Report;
  readonly #signal: AbortSignal;
  /** Aborts when no further request may begin: the time is over, the destination failed, or the publish is given up. */
  readonly #enough = new AbortController();
  readonly #failedTopics = new Set<string>();
  readonly #exchanges = new Exchanges();
  #unknown: string | null = null;

  constructor(
    settings: HttpSettings,
    origins: Origins,
    batch: readonly Message[],
    report: Report,
    signal: AbortSignal,
  ) {
    this.#settings = settings;
    this.#origins = origins;
    this.#batch = batch;
    this.#report = report;
    this.#signal = signal;
  }

  async run(): Promise<void> {
    if (this.#batch.length === 0) return;
    const stop = () => this.#stop();
    const giveUp = () => {
      stop();
      this.#exchanges.giveUp();
    };
    const timer = setTimeout(stop, this.#settings.sendMs);
    this.#signal.addEventListener("abort", giveUp, { once: true });
    if (this.#signal.aborted) giveUp();
    try {
      await Promise.all(linesOf(this.#batch).map((line) => this.#sendLine(line)));
    } finally {
      clearTimeout(timer);
      this.#signal.removeEventListener("abort", giveUp);
    }
    const { name } = this.#settings;
    if (this.#signal.aborted) throw new RelayError("PUBLISH_UNKNOWN", `The publish to "${name}" was given up.`);
    if (this.#unknown !== null) throw new RelayError("PUBLISH_UNKNOWN", `${this.#unknown}.`);
  }

  #stop(): void {
    if (this.#enough.signal.aborted) return;
    this.#enough.abort();
    this.#origins.dismiss();
  }

  /** The events of one key, by their indexes. */
  async #sendLine(line: readonly number[]): Promise<void> {
    let isOpen = true;
    for (const index of line) {
      const outcome: Outcome | typeof UNKNOWN = isOpen ? await this.#send(this.#batch[index]!) : skipped;
      if (this.#signal.aborted) return;
      if (outcome !== UNKNOWN) this.#report(index, outcome);
      isOpen &&= outcome !== UNKNOWN && outcome.kind === "delivered";
    }
  }

  /** What is wrong with more than this event keeps others from being sent for nothing. */
  #heed(outcome: Outcome | typeof UNKNOWN, topic: string): void {
    if (outcome === UNKNOWN || outcome.kind !== "retry") return;
    if (outcome.scope === "destination") this.#stop();
    if (outcome.scope === "topic") this.#failedTopics.add(topic);
  }

  async #send(message: Message): Promise<Outcome | typeof UNKNOWN> {
    const place = this.#placeOf(message);
    if (typeof place === "string") return rejected(place);
    const headers = requestHeaders(message, this.#settings.headers);
    if (typeof headers === "string") return rejected(headers);
    const origin = this.#origins.of(place.origin);
    // What waits for a connection may be told meanwhile that nothing more may be sent.
    if (!(await origin.admit(this.#enough.signal))) return skipped;
    try {
      if (this.#failedTopics.has(message.topic)) return skipped;
      const { method, requestTimeoutMs } = this.#settings;
      const request: HttpRequest = {
        path: place.path,
        method,
        headers: this.#signed(headers.flat, headers.id, message.payload),
        body: message.payload,
      };
      const answer = await this.#exchanges.send(origin, request, requestTimeoutMs);
      const outcome = this.#judge(place.origin, answer);
      // Before the next one is let in.
      this.#heed(outcome, message.topic);
      return outcome;
    } finally {
      origin.release();
    }
  }

  #judge(shown: string, answer: Answer): Outcome | typeof UNKNOWN {
    const { clock, retryAfterMsMax, target } = this.#settings;
    const scope: Scope = "of" in target ? target.scope : "destination";
    const outcome = outcomeOf(answer, { scope, shown, wallMs: clock.wallMs(), retryAfterMsMax });
    if (outcome === UNKNOWN && answer.kind === "failed") {
      this.#unknown ??= `${shown} gave no answer, the event may have arrived: ${answer.error.message}`;
    }
    return outcome;
  }

  #signed(headers: readonly string[], id: string, body: Buffer): readonly string[] {
    const { clock, signingKeys } = this.#settings;
    if (signingKeys.length === 0) return headers;
    return [...headers, ...signatureHeaders(signingKeys, id, Math.floor(clock.wallMs() / 1_000), body).flat()];
  }

  /** Where the message goes, or why it goes nowhere. */
  #placeOf(message: Message): HttpPlace | string {
    const { target } = this.#settings;
    if (!("of" in target)) return target;
    try {
      const url = URL.parse(target.of(message));
      if (url === null || !/^https?:$/.test(url.protocol))
        return "the event makes no address of the form https://host/path";
      if (target.origin === null) checkHost(url.hostname, this.#settings);
      else if (url.origin !== target.origin) return `the event leads away from ${target.origin}`;
      return placeOf(url);
    } catch (error) {
      if (error instanceof ForbiddenHost || error instanceof Error) return error.message;
      throw error;
    }
  }
}

/** The indexes of each key's messages; a message without a key is a line of its own. */
function linesOf(batch: readonly Message[]): readonly (readonly number[])[] {
  const lines: number[][] = [];
  const ofKey = new Map<string, number[]>();
  for (const [index, { event }] of batch.entries()) {
    const known = event.key === null ? undefined : ofKey.get(event.key);
    if (known !== undefined) {
      known.push(index);
      continue;
    }
    const line = [index];
    lines.push(line);
    if (event.key !== null) ofKey.set(event.key, line);
  }
  return lines;
}
