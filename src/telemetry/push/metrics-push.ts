import type { Clock } from "../../core/clock.ts";
import type { Logger } from "../logs/logger.ts";
import { RepeatLimiter } from "../logs/repeat-limiter.ts";
import type { PushTally } from "../push-tally.ts";
import { fullReason, post, pushTarget } from "./post.ts";
import { type MetricFamily, snappyBlock, writeRequest } from "./write-request.ts";

interface MetricsPushOptions {
  readonly url: string;
  readonly intervalMs: number;
  /** The labels that a scraper would add. */
  readonly labels: Readonly<Record<string, string>>;
  readonly families: () => Promise<readonly MetricFamily[]>;
  readonly tally: PushTally;
  readonly logger: Logger;
  readonly clock: Clock;
}

const WARN_EVERY_MS = 60_000;
const LAST_MS = 2_000;
const HEADERS = {
  "content-type": "application/x-protobuf",
  "content-encoding": "snappy",
  "x-prometheus-remote-write-version": "0.1.0",
  "user-agent": "outbox-relay",
};

/**
 * Pushes the metrics periodically by Prometheus remote write. A failed push is not retried: the next one has newer
 * figures. `stop` sends a last one, so that short runs are seen too.
 */
export class MetricsPush {
  readonly #options: MetricsPushOptions;
  readonly #stopping = new AbortController();
  readonly #repeats: RepeatLimiter;
  #running: Promise<void> | null = null;

  constructor(options: MetricsPushOptions) {
    this.#options = options;
    this.#repeats = new RepeatLimiter(options.clock, WARN_EVERY_MS);
    options.tally.expect("remote_write");
  }

  start(): void {
    this.#running ??= this.#run();
  }

  async stop(): Promise<void> {
    if (this.#stopping.signal.aborted) return;
    this.#stopping.abort();
    if (this.#running === null) return;
    const over = new AbortController();
    const last = this.#running.then(() => this.#push(LAST_MS));
    await Promise.race([last, this.#options.clock.sleep(LAST_MS, over.signal)]);
    over.abort();
  }

  async #run(): Promise<void> {
    const { clock, intervalMs } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await clock.sleep(intervalMs, signal);
      if (!signal.aborted) await this.#push(Math.min(intervalMs, 5_000));
    }
  }

  async #push(timeoutMs: number): Promise<void> {
    const { clock, families, labels, logger, tally, url } = this.#options;
    const body = snappyBlock(writeRequest(await families(), labels, Math.floor(clock.wallMs())));
    const pushed = await post(pushTarget(url, "", null), body, HEADERS, timeoutMs);
    if (pushed.kind === "accepted") return;
    tally.failed("remote_write");
    const repeated = this.#repeats.count("");
    if (repeated === null) return;
    logger.warn({ receiver: "remote_write", reason: fullReason(pushed), repeated }, "metrics could not be pushed");
  }
}
