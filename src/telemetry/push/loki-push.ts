import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { Clock } from "../../core/clock.ts";
import type { PushTally } from "../push-tally.ts";
import { Repeats } from "../repeats.ts";
import { type Pushed, type PushTarget, post, pushTarget } from "./post.ts";

interface LokiPushOptions {
  readonly url: string;
  /** user:password */
  readonly basicAuth: string | null;
  readonly service: string;
  readonly tally: PushTally;
  readonly clock: Clock;
  /** Told once a minute while it fails. */
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
const GATHER_MS = 1_000;
const RETRY_MS = { first: 1_000, last: 30_000 };
const WARN_EVERY_MS = 60_000;
const STOP_MS = 2_000;
/** Beyond these the oldest lines go: the process has 256 MB, and the lines are on standard output as well. */
const LINES_MAX = 10_000;
const BYTES_MAX = 4 * 1024 * 1024;
const zip = promisify(gzip);

/**
 * Sends log lines to Loki, behind everybody's back: `add` never waits and never throws, however the receiver behaves.
 * What it refuses for good is given up, what it cannot take now is sent again.
 */
export class LokiPush {
  readonly #options: LokiPushOptions;
  readonly #target: PushTarget;
  readonly #repeats: Repeats;
  readonly #stopping = new AbortController();
  #lines: Line[] = [];
  #bytes = 0;
  #made = 0;
  #sending: Promise<void> | null = null;

  constructor(options: LokiPushOptions) {
    this.#options = options;
    this.#target = pushTarget(options.url, PATH, options.basicAuth);
    this.#repeats = new Repeats(options.clock, WARN_EVERY_MS);
    options.tally.expect("loki");
  }

  add(level: string, line: string): void {
    if (this.#stopping.signal.aborted && this.#sending === null) return;
    const text = line.trimEnd();
    // Lines of one millisecond keep their order.
    this.#made = (this.#made + 1) % 1_000_000;
    const atNs = `${Math.floor(this.#options.clock.wallMs())}${String(this.#made).padStart(6, "0")}`;
    this.#lines.push({ level, text, atNs });
    this.#bytes += text.length;
    this.#trim();
    this.#sending ??= this.#send();
  }

  /** Sends what waits, once, and returns when that is done or its time is over. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    const over = new AbortController();
    await Promise.race([this.#sending ?? Promise.resolve(), this.#options.clock.sleep(STOP_MS, over.signal)]);
    over.abort();
    this.#drop(this.#lines.length);
  }

  /** Runs while anything waits, so that a silent process costs nothing. */
  async #send(): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#stopping;
    let pauseMs = RETRY_MS.first;
    await clock.sleep(GATHER_MS, signal);
    while (this.#lines.length > 0) {
      const batch = this.#take();
      const pushed = await this.#push(batch);
      if (pushed.kind === "taken") {
        pauseMs = RETRY_MS.first;
        if (this.#lines.length < BATCH_LINES) await clock.sleep(GATHER_MS, signal);
        continue;
      }
      this.#failed(pushed.reason);
      if (pushed.kind === "refused") this.#options.tally.dropped("loki", batch.length);
      else this.#putBack(batch);
      if (signal.aborted) break;
      await clock.sleep(pauseMs, signal);
      pauseMs = Math.min(RETRY_MS.last, pauseMs * 2);
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

  /** A tenth at a time, because moving the whole list for every line would cost the delivery. */
  #trim(): void {
    if (this.#lines.length <= LINES_MAX && this.#bytes <= BYTES_MAX) return;
    this.#drop(Math.ceil(this.#lines.length / 10));
  }

  #drop(count: number): void {
    for (const { text } of this.#lines.splice(0, count)) this.#bytes -= text.length;
    if (count > 0) this.#options.tally.dropped("loki", count);
  }

  /** The line about it is for this receiver too: one a minute makes no endless circle. */
  #failed(reason: string): void {
    const { tally, warn } = this.#options;
    tally.failed("loki");
    const repeated = this.#repeats.count("");
    if (repeated !== null) warn(reason, repeated);
  }
}
