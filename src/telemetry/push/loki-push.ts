import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { Backoff } from "../../core/backoff.ts";
import type { Clock } from "../../core/clock.ts";
import { RepeatLimiter } from "../logs/repeat-limiter.ts";
import type { PushTally } from "../push-tally.ts";
import { fullReason, type Pushed, type PushTarget, post, pushTarget } from "./post.ts";

interface LokiPushOptions {
  readonly url: string;
  /** user:password */
  readonly basicAuth: string | null;
  readonly service: string;
  readonly tally: PushTally;
  readonly clock: Clock;
  /** Called at most once a minute while pushes fail. */
  readonly warn: (reason: string, repeated: number) => void;
}

interface Line {
  readonly level: string;
  readonly text: string;
  readonly atNs: string;
}

const PATH = "/loki/api/v1/push";
const BATCH_LINES = 1_000;
const BATCH_BYTES = 512 * 1024;
const LINGER_MS = 1_000;
const RETRY_MS = { firstMs: 1_000, lastMs: 30_000 };
const WARN_EVERY_MS = 60_000;
const STOP_MS = 2_000;
/** Beyond these bounds the oldest lines are dropped: the process has 256 MB, and standard output has the lines too. */
const LINES_MAX = 10_000;
const BYTES_MAX = 4 * 1024 * 1024;
const zip = promisify(gzip);

/**
 * Pushes log lines to Loki in the background: `add` never waits and never throws, however the receiver behaves. It
 * drops what the receiver rejects, and retries what the receiver cannot accept now.
 */
export class LokiPush {
  readonly #options: LokiPushOptions;
  readonly #target: PushTarget;
  readonly #repeats: RepeatLimiter;
  readonly #stopping = new AbortController();
  #lines: Line[] = [];
  #bytes = 0;
  #sequence = 0;
  #sending: Promise<void> | null = null;

  constructor(options: LokiPushOptions) {
    this.#options = options;
    this.#target = pushTarget(options.url, PATH, options.basicAuth);
    this.#repeats = new RepeatLimiter(options.clock, WARN_EVERY_MS);
    options.tally.expect("loki");
  }

  add(level: string, line: string): void {
    if (this.#stopping.signal.aborted && this.#sending === null) return;
    const text = line.trimEnd();
    // The sequence number keeps the order of lines of one millisecond.
    this.#sequence = (this.#sequence + 1) % 1_000_000;
    const atNs = `${Math.floor(this.#options.clock.wallMs())}${String(this.#sequence).padStart(6, "0")}`;
    this.#lines.push({ level, text, atNs });
    this.#bytes += text.length;
    this.#trim();
    this.#sending ??= this.#send();
  }

  /** Makes one last push. Returns when it is done or the time is up. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    const over = new AbortController();
    await Promise.race([this.#sending ?? Promise.resolve(), this.#options.clock.sleep(STOP_MS, over.signal)]);
    over.abort();
    this.#drop(this.#lines.length);
  }

  /** Runs only while lines wait, so that an idle process costs nothing. */
  async #send(): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#stopping;
    const backoff = new Backoff(RETRY_MS);
    await clock.sleep(LINGER_MS, signal);
    while (this.#lines.length > 0) {
      const batch = this.#take();
      const pushed = await this.#push(batch);
      if (pushed.kind === "accepted") {
        backoff.reset();
        if (this.#lines.length < BATCH_LINES) await clock.sleep(LINGER_MS, signal);
        continue;
      }
      this.#failed(fullReason(pushed));
      if (pushed.kind === "refused") this.#options.tally.dropped("loki", batch.length);
      else this.#putBack(batch);
      if (signal.aborted) break;
      await clock.sleep(backoff.nextMs(), signal);
    }
    this.#sending = null;
  }

  async #push(batch: readonly Line[]): Promise<Pushed> {
    const { service } = this.#options;
    const streams = [...Map.groupBy(batch, ({ level }) => level)].map(([level, lines]) => ({
      stream: { job: "outbox-relay", service, level },
      values: lines.map(({ atNs, text }) => [atNs, text]),
    }));
    const body = await zip(JSON.stringify({ streams }));
    const headers = { "content-type": "application/json", "content-encoding": "gzip" };
    return await post(this.#target, body, headers, this.#stopping.signal.aborted ? STOP_MS : undefined);
  }

  #take(): Line[] {
    let bytes = 0;
    let count = 0;
    while (count < this.#lines.length && count < BATCH_LINES && bytes < BATCH_BYTES) {
      bytes += this.#lines[count]!.text.length;
      count += 1;
    }
    this.#bytes -= bytes;
    return this.#lines.splice(0, count);
  }

  #putBack(batch: Line[]): void {
    this.#lines = [...batch, ...this.#lines];
    for (const { text } of batch) this.#bytes += text.length;
    this.#trim();
  }

  /** Drops a tenth at a time: moving the whole list for every line would slow the delivery. */
  #trim(): void {
    if (this.#lines.length <= LINES_MAX && this.#bytes <= BYTES_MAX) return;
    this.#drop(Math.ceil(this.#lines.length / 10));
  }

  #drop(count: number): void {
    for (const { text } of this.#lines.splice(0, count)) this.#bytes -= text.length;
    if (count > 0) this.#options.tally.dropped("loki", count);
  }

  /** The warning is a log line for this receiver too: one per minute prevents an endless loop. */
  #failed(reason: string): void {
    const { tally, warn } = this.#options;
    tally.failed("loki");
    const repeated = this.#repeats.count("");
    if (repeated !== null) warn(reason, repeated);
  }
}
