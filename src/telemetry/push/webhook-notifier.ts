import { backoffMs } from "../../core/backoff.ts";
import type { Clock } from "../../core/clock.ts";
import type { Logger } from "../logs/logger.ts";
import type { PushTally } from "../push-tally.ts";
import { fullReason, type PushTarget, post, pushTarget } from "./post.ts";
import { type Notice, type NoticeState, type NotifiedState, noticeOf, resumedNotice } from "./webhook-notice.ts";

interface WebhookNotifierOptions {
  readonly url: string;
  /** Sent as a bearer token; null without one. */
  readonly token: string | null;
  /** The least time between two notifications. The next one reports what happened meanwhile. */
  readonly everyMs: number;
  readonly service: string;
  readonly instance: string;
  /** The console's URL; null where it is not configured. */
  readonly consoleUrl: string | null;
  /** Reads the current state of the service. */
  readonly look: () => Promise<NoticeState>;
  readonly tally: PushTally;
  readonly logger: Logger;
  readonly clock: Clock;
}

const CHECK_EVERY_MS = 5_000;
const TIMEOUT_MS = 5_000;
/** After these tries the notifier waits for the interval, and then reports the state at that time. */
const TRIES = 5;
const PAUSE_MS = { firstMs: 1_000, lastMs: 8_000 };

/**
 * Notifies a webhook when the service's health gets worse, and when events become dead letters. It polls the state, so
 * that no delivery ever waits for it. The address comes only from the settings, and the body holds neither reasons nor
 * anything of an event.
 */
export class WebhookNotifier {
  readonly #options: WebhookNotifierOptions;
  readonly #target: PushTarget;
  readonly #stopping = new AbortController();
  #running: Promise<void> | null = null;
  #notified: NotifiedState | null = null;
  #sentMs = Number.NEGATIVE_INFINITY;
  #problem: string | null = null;

  constructor(options: WebhookNotifierOptions) {
    this.#options = options;
    const { headers, url } = pushTarget(options.url, "", null);
    const bearer = options.token === null ? {} : { authorization: `Bearer ${options.token}` };
    this.#target = { url, headers: { ...headers, ...bearer } };
    options.tally.expect("webhook");
  }

  /** Why the last notification did not arrive; null when it did. */
  get problem(): string | null {
    return this.#problem;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { clock, logger } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await this.look().catch((error: unknown) => {
        logger.warn({ receiver: "webhook", reason: String(error) }, "the health for the webhook cannot be read");
      });
      await clock.sleep(CHECK_EVERY_MS, signal);
    }
  }

  /** Checks the state once, and notifies if there is news and the interval is over. */
  async look(): Promise<void> {
    const { clock, everyMs, look } = this.#options;
    const now = await look();
    const { notice, notified } = noticeOf(this.#notified, now);
    if (notice === null) this.#notified = notified;
    const due = notice ?? (this.#problem === null ? null : resumedNotice(now));
    // The state counts as notified only after the notification arrived: until then, each check finds the whole
    // difference.
    if (due === null || clock.monotonicMs() - this.#sentMs < everyMs) return;
    this.#sentMs = clock.monotonicMs();
    if (await this.#send(due)) this.#notified = notified;
  }

  /** True when the notification arrived. */
  async #send(notice: Notice): Promise<boolean> {
    const { clock, consoleUrl, instance, logger, service, tally } = this.#options;
    const at = new Date(clock.wallMs()).toISOString();
    const text = `${service}: ${notice.text}`;
    const body = Buffer.from(JSON.stringify({ ...notice, text, at, service, instance, console: consoleUrl }));
    const { signal } = this.#stopping;
    let [reason, short] = ["", ""];
    for (let attempt = 1; attempt <= TRIES && !signal.aborted; attempt += 1) {
      const pushed = await post(this.#target, body, HEADERS, TIMEOUT_MS);
      if (pushed.kind === "accepted") {
        this.#problem = null;
        return true;
      }
      tally.failed("webhook");
      // The receiver's response goes to the log only: health is public.
      [reason, short] = [fullReason(pushed), pushed.reason];
      if (pushed.kind === "refused") break;
      if (attempt < TRIES) await clock.sleep(backoffMs(PAUSE_MS, attempt - 1), signal);
    }
    this.#problem = `the webhook could not be notified: ${short}`;
    logger.warn({ receiver: "webhook", reason, notice: notice.type }, "the webhook could not be notified; retrying");
    return false;
  }
}

const HEADERS = { "content-type": "application/json", "user-agent": "outbox-relay" };
