import type { ClaimedEvent } from "../../../ports/queue-store.ts";
import type { LogRow } from "../log/log-kind.ts";
import { readChange } from "./pgoutput.ts";
import type { LinkListener, ReplicationLink } from "./replication-link.ts";
import { WalBuffer } from "./wal-buffer.ts";
import type { WalPosition, WalSegment } from "./wal-position.ts";
import { type WalContent, WalReading } from "./wal-reading.ts";

interface StreamOptions {
  readonly content: WalContent;
  readonly from: WalPosition;
  /** The same position as the caller knows it, possibly on a timeline before a promotion. */
  readonly given: WalPosition;
  readonly takes: (event: ClaimedEvent) => boolean;
  readonly onUnrouted: (event: ClaimedEvent) => void;
  /** Rows arrived where there were none. */
  readonly onNews: () => void;
  /** After this long without a status update the server disconnects the reader; 0: never. */
  readonly senderTimeoutMs: number;
  /** How long a settled position is withheld before the server can remove what lies before it. */
  readonly confirmAfterMs: number;
  /** After this long without a request the reader counts as gone, and the slot is released. */
  readonly idleMaxMs: number;
}

const TICK_MS = 1_000;
const STATUS_EVERY_MS = 10_000;
/** How long to wait for a server before it is asked for its position. */
const ASK_AFTER_MS = 10;
/** A server that was asked and sends nothing for this long is gone, whatever the socket reports. */
const RECEIVE_TIMEOUT_MS = 30_000;

/**
 * The incoming log with a buffer. When the buffer is full, the relay reads nothing more from the socket and the server
 * waits; status updates continue, so that the server does not disconnect the reader.
 */
export class WalStream implements LinkListener {
  readonly #link: ReplicationLink;
  readonly #options: StreamOptions;
  readonly #reading: WalReading;
  readonly #buffer = new WalBuffer();
  readonly #settled: { readonly lsn: bigint; readonly atMs: number }[] = [];
  readonly #tick: NodeJS.Timeout;
  #settledLsn: bigint;
  /** Where the last returned page ended. */
  #given: WalPosition;
  #confirmedLsn = 0n;
  #isPaused = false;
  #failure: unknown = null;
  #wake: (() => void) | null = null;
  #statusSentAtMs = 0;
  #heardAtMs = performance.now();
  #askedAtMs = performance.now();
  #rowsSeen = 0;
  #targetLsn = 0n;

  constructor(link: ReplicationLink, options: StreamOptions) {
    this.#link = link;
    this.#options = options;
    this.#given = options.given;
    this.#settledLsn = 0n;
    this.#reading = new WalReading(options.content, options.from, (row) => this.#onRow(row));
    const { senderTimeoutMs } = options;
    const tickMs = senderTimeoutMs > 0 ? Math.min(TICK_MS, Math.max(50, senderTimeoutMs / 4)) : TICK_MS;
    this.#tick = setInterval(() => this.#onTick(), tickMs);
  }

  /** Null while the stream works. */
  get failure(): unknown {
    return this.#failure;
  }

  /** Where the next page begins. */
  get given(): WalPosition {
    return this.#given;
  }

  /** Everything before it has arrived. */
  get receivedLsn(): bigint {
    return this.#reading.endLsn;
  }

  get buffered(): number {
    return this.#buffer.length;
  }

  /** When the oldest buffered row was committed, by the server's clock. */
  get oldestCommitMs(): number | null {
    return this.#buffer.first?.segment.committedAtMs ?? null;
  }

  /** The server had written more when it was last asked. */
  get isBehind(): boolean {
    return this.#reading.endLsn < this.#targetLsn;
  }

  /** Estimates the rows between what has arrived and `currentLsn`, by the density of those that arrived. */
  estimateUnread(currentLsn: bigint): number {
    const readBytes = Number(this.#reading.endLsn - this.#options.from.segment.lsn);
    const unreadBytes = Number(currentLsn - this.#reading.endLsn);
    if (unreadBytes <= 0 || readBytes <= 0) return 0;
    return Math.round((this.#rowsSeen / readBytes) * unreadBytes);
  }

  take(rows: number, bytes: number): { readonly rows: readonly LogRow<WalSegment>[]; readonly head: WalPosition } {
    this.#askedAtMs = performance.now();
    const taken = this.#buffer.take(rows, bytes);
    const last = taken.at(-1);
    if (this.#buffer.length === 0) this.#given = this.#reading.head;
    else if (last !== undefined) this.#given = { segment: last.segment, mark: last.mark };
    if (this.#isPaused && this.#buffer.hasRoom) {
      this.#isPaused = false;
      this.#heardAtMs = performance.now();
      this.#link.resume();
    }
    return { rows: taken, head: this.#given };
  }

  /** A reader is still there, even if it has no room for more. */
  touch(): void {
    this.#askedAtMs = performance.now();
  }

  /** Waits for rows, or until everything before `targetLsn` has arrived, at most `timeoutMs`. */
  async settleDown(targetLsn: bigint, timeoutMs: number): Promise<void> {
    this.#targetLsn = targetLsn;
    const startMs = performance.now();
    const deadlineMs = startMs + timeoutMs;
    const isOver = () => this.#buffer.length > 0 || this.#failure !== null || this.#reading.endLsn >= targetLsn;
    let hasAsked = false;
    while (!isOver()) {
      const nowMs = performance.now();
      if (nowMs >= deadlineMs) return;
      // A server that has sent everything reports it by itself; asking every time would cost more than reading.
      const isTimeToAsk: boolean = !hasAsked && nowMs - startMs >= ASK_AFTER_MS;
      if (isTimeToAsk) this.#sendStatus(true);
      hasAsked ||= isTimeToAsk;
      await this.#news(hasAsked ? deadlineMs - nowMs : ASK_AFTER_MS);
    }
  }

  async #news(timeoutMs: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const late = setTimeout(resolve, timeoutMs);
      this.#wake = () => {
        clearTimeout(late);
        resolve();
      };
    });
    this.#wake = null;
  }

  /** Everything before the position is settled for good. */
  settle({ lsn, timeline }: WalSegment): void {
    if (timeline === this.#options.from.segment.timeline && lsn > this.#settledLsn) this.#settledLsn = lsn;
  }

  async close(): Promise<void> {
    clearInterval(this.#tick);
    this.#failure ??= new Error("Connection terminated: the relay closed it");
    this.#wake?.();
    await this.#link.end();
  }

  onChange(buffer: Buffer, at: number): void {
    this.#heardAtMs = performance.now();
    try {
      readChange(buffer, at, this.#reading);
    } catch (error) {
      // Nothing after the faulty change is read, so nothing after it is ever confirmed.
      this.onFailure(error);
      void this.#link.end();
    }
  }

  onAlive(endLsn: bigint, wantsReply: boolean): void {
    this.#heardAtMs = performance.now();
    this.#reading.reached(endLsn);
    if (wantsReply) this.#sendStatus(false);
    this.#wake?.();
  }

  onFailure(error: unknown): void {
    clearInterval(this.#tick);
    this.#failure ??= error;
    this.#wake?.();
    this.#options.onNews();
  }

  #onRow(row: LogRow<WalSegment>): void {
    const { event } = row;
    this.#rowsSeen += 1;
    // Unreadable events belong to every pipeline that meets them: no rule can match them, and they must not disappear.
    if (event.fault?.code !== "EVENT_UNREADABLE" && !this.#options.takes(event)) {
      this.#options.onUnrouted(event);
      return;
    }
    this.#buffer.add(row);
    if (this.#buffer.length === 1) {
      this.#wake?.();
      this.#options.onNews();
    }
    if (!this.#isPaused && this.#buffer.isFull) {
      this.#isPaused = true;
      this.#link.pause();
    }
  }

  #onTick(): void {
    const nowMs = performance.now();
    const hasMoved = this.#advance(nowMs);
    const { idleMaxMs, senderTimeoutMs } = this.#options;
    if (nowMs - this.#askedAtMs > idleMaxMs) {
      this.onFailure(new Error(`Connection terminated: no reader requested rows for ${idleMaxMs} ms`));
      void this.#link.end();
      return;
    }
    const everyMs = senderTimeoutMs > 0 ? Math.min(STATUS_EVERY_MS, senderTimeoutMs / 4) : STATUS_EVERY_MS;
    const silentMs = this.#isPaused ? 0 : nowMs - this.#heardAtMs;
    if (silentMs > RECEIVE_TIMEOUT_MS) {
      this.onFailure(new Error(`Connection terminated: the server was silent for ${RECEIVE_TIMEOUT_MS} ms`));
      void this.#link.end();
    } else if (hasMoved || nowMs - this.#statusSentAtMs >= everyMs) this.#sendStatus(silentMs > STATUS_EVERY_MS);
  }

  /**
   * Confirms a position only some time after its checkpoint was written: a standby that receives the slot's new
   * position should have the checkpoint by then. Otherwise a promotion could lose events.
   */
  #advance(nowMs: number): boolean {
    if (this.#settledLsn > (this.#settled.at(-1)?.lsn ?? this.#confirmedLsn)) {
      this.#settled.push({ lsn: this.#settledLsn, atMs: nowMs });
    }
    const before = this.#confirmedLsn;
    while (this.#settled[0] !== undefined && nowMs - this.#settled[0].atMs >= this.#options.confirmAfterMs) {
      this.#confirmedLsn = this.#settled.shift()!.lsn;
    }
    return this.#confirmedLsn > before;
  }

  #sendStatus(wantsReply: boolean): void {
    this.#statusSentAtMs = performance.now();
    // Report the received position too, or the server would keep asking for it.
    this.#link.sendStatus({ receivedLsn: this.receivedLsn, settledLsn: this.#confirmedLsn }, wantsReply);
  }
}
