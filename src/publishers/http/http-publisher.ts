import { withinTime } from "../../core/clock.ts";
import { RelayError } from "../../core/errors.ts";
import type { Message } from "../../core/event.ts";
import { type FailureScope, type Outcome, rejected, skipped } from "../../core/outcome.ts";
import { signatureHeaders } from "../../core/webhook-signature.ts";
import type { Obstacle, Publisher, Report, RequestTimer } from "../../ports/publisher.ts";
import { answerText } from "./http-answer.ts";
import { type HttpPlace, type HttpPublisherOptions, type HttpSettings, httpSettings, placeOf } from "./http-config.ts";
import { type Answer, outcomeOf, UNKNOWN } from "./http-errors.ts";
import { Exchanges, type HttpRequest } from "./http-exchange.ts";
import { checkHost, ForbiddenHost } from "./http-guard.ts";
import { requestHeaders } from "./http-headers.ts";
import { connectTo, Origins } from "./http-origins.ts";

export type { HttpPublisherOptions, HttpTarget, HttpTls } from "./http-config.ts";

/** Publishes to an HTTP endpoint: one event becomes one request. Opens no connection before the first publish. */
export function httpPublisher(options: HttpPublisherOptions): Publisher {
  const settings = httpSettings(options);
  const origins = new Origins(settings);
  return {
    name: settings.name,
    capabilities: { keyOrderInBatch: true, deduplicates: false, timesRequests: true },
    publish: (...args) => new Publishing(settings, origins, ...args).run(),
    examine: (signal) => examineHttp(settings, signal),
    close: () => origins.close(),
  };
}

/** One publish: the events of a key one after another, different keys in parallel. */
class Publishing {
  readonly #settings: HttpSettings;
  readonly #origins: Origins;
  readonly #batch: readonly Message[];
  readonly #report: Report;
  readonly #signal: AbortSignal;
  readonly #timer: RequestTimer | undefined;
  /** Aborts when no further request may start: the time is over, the destination failed, or the publish was aborted. */
  readonly #enough = new AbortController();
  readonly #failedTopics = new Set<string>();
  readonly #exchanges = new Exchanges();
  #unknown: string | null = null;

  constructor(
    settings: HttpSettings,
    origins: Origins,
    ...[batch, report, signal, timer]: Parameters<Publisher["publish"]>
  ) {
    this.#settings = settings;
    this.#origins = origins;
    this.#batch = batch;
    this.#report = report;
    this.#signal = signal;
    this.#timer = timer;
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
      await Promise.all(groupByKey(this.#batch).map((line) => this.#sendInOrder(line)));
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
    this.#origins.dismissAborted();
  }

  /** Sends the events of one key, by their indexes. After a failure the rest is skipped, to keep the order. */
  async #sendInOrder(line: readonly number[]): Promise<void> {
    let isOpen = true;
    for (const index of line) {
      const outcome: Outcome | typeof UNKNOWN = isOpen ? await this.#send(this.#batch[index]!) : skipped;
      if (this.#signal.aborted) return;
      if (outcome !== UNKNOWN) this.#report(index, outcome);
      isOpen &&= outcome !== UNKNOWN && outcome.kind === "delivered";
    }
  }

  /** A failure that affects more than this event stops the other requests. */
  #stopAfterFailure(outcome: Outcome | typeof UNKNOWN, topic: string): void {
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
    // While it waits for a slot, the publish may stop.
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
      const answered = this.#timer?.();
      const answer = await this.#exchanges.send(origin, request, requestTimeoutMs);
      // A timeout counts as a measurement; an aborted request does not.
      answered?.(answer.kind === "answered" || (answer.wasSent && !this.#signal.aborted));
      const outcome = this.#judge(place.origin, answer);
      // Before the next request gets this slot.
      this.#stopAfterFailure(outcome, message.topic);
      return outcome;
    } finally {
      origin.release();
    }
  }

  #judge(shown: string, answer: Answer): Outcome | typeof UNKNOWN {
    const { clock, retryAfterMsMax, target } = this.#settings;
    const scope: FailureScope = "of" in target ? target.scope : "destination";
    const said = answer.kind === "answered" ? answerText(answer, this.#settings) : "";
    const outcome = outcomeOf(answer, { scope, shown, wallMs: clock.wallMs(), retryAfterMsMax, said });
    if (outcome === UNKNOWN && answer.kind === "failed") {
      this.#unknown ??= `${shown} gave no answer, so the event may have arrived: ${answer.error.message}`;
    }
    return outcome;
  }

  #signed(headers: readonly string[], id: string, body: Buffer): readonly string[] {
    const { clock, signingKeys } = this.#settings;
    if (signingKeys.length === 0) return headers;
    return [...headers, ...signatureHeaders(signingKeys, id, Math.floor(clock.wallMs() / 1_000), body).flat()];
  }

  /** The message's address, or why it has none. */
  #placeOf(message: Message): HttpPlace | string {
    const { target } = this.#settings;
    if (!("of" in target)) return target;
    try {
      const url = URL.parse(target.of(message));
      if (url === null || !/^https?:$/.test(url.protocol))
        return "the event does not result in an address of the form https://host/path";
      if (target.origin === null) checkHost(url.hostname, this.#settings);
      else if (url.origin !== target.origin) return `the event's address is not below ${target.origin}`;
      return placeOf(url);
    } catch (error) {
      if (error instanceof ForbiddenHost || error instanceof Error) return error.message;
      throw error;
    }
  }
}

/** Groups the messages' indexes by key; a message without a key is its own group. */
function groupByKey(batch: readonly Message[]): readonly (readonly number[])[] {
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

/**
 * Checks the connection, with TLS if the address says so, but sends no request: some receivers treat any request as an
 * event. So a wrong login or path shows only with the first event. If the events name the host, there is nothing to
 * check.
 */
async function examineHttp(settings: HttpSettings, signal: AbortSignal): Promise<readonly Obstacle[]> {
  const { clock, requestTimeoutMs, retryAfterMsMax, target } = settings;
  const { origin } = target;
  if (origin === null) return [];
  const late = () => new Error(`no connection within ${requestTimeoutMs} ms`);
  try {
    (await withinTime(connectTo(settings, new URL(origin)), requestTimeoutMs, signal, late)).destroy();
    return [];
  } catch (error) {
    const circumstances = {
      scope: "destination",
      shown: origin,
      said: "",
      wallMs: clock.wallMs(),
      retryAfterMsMax,
    } as const;
    const outcome = outcomeOf({ kind: "failed", error: error as Error, wasSent: false }, circumstances);
    return outcome === UNKNOWN || !("reason" in outcome) ? [] : [{ severity: "error", reason: outcome.reason }];
  }
}
