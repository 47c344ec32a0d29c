import type { ClaimedEvent } from "../../../ports/queue-store.ts";
import type { LogRow } from "../log/log-kind.ts";
import { readChange } from "./pgoutput.ts";
import type { LinkListener, ReplicationLink } from "./replication-link.ts";
import { WalBuffer } from "./wal-buffer.ts";
import type { WalPlace, WalSegment } from "./wal-place.ts";
import { type WalContent, WalReading } from "./wal-reading.ts";

interface StreamOptions {
  readonly content: WalContent;
  readonly from: WalPlace;
  /** The same place as the caller knows it, who may not have heard of a promotion. */
  readonly given: WalPlace;
  readonly takes: (event: ClaimedEvent) => boolean;
  readonly onUntaken: (event: ClaimedEvent) => void;
  /** Rows arrived where there were none. */
  readonly onNews: () => void;
  /** After so long without a word the server gives the reader up; 0: never. */
  readonly senderTimeoutMs: number;
  /** How long a settled place is kept back before the server may forget what lies before it. */
  readonly confirmAfterMs: number;
  /** After so long without a question nobody reads any more, and the slot is let go. */
  readonly idleMaxMs: number;
}

const TICK_MS = 1_000;
const TELL_EVERY_MS = 10_000;
/** How long a server is waited for before it is asked how far it came. */
const ASK_AFTER_MS = 10;
/** A server that was asked and says nothing for so long is gone, whatever the socket thinks. */
const SILENCE_MAX_MS = 30_000;

/**
 * The log as it comes in, with a buffer in front. When that is full, nothing more is taken from the socket, and the
 * server waits; it is told that somebody is here all the same.
 */
export class WalStream implements LinkListener {
  readonly #link: ReplicationLink;
  readonly #options: StreamOptions;
  readonly #reading: WalReading;
  readonly #buffer = new WalBuffer();
  readonly #settled: { readonly lsn: bigint; readonly atMs: number }[] = [];
  readonly #tick: NodeJS.Timeout;
  #settledLsn: bigint;
  /** Where the last page that was given out ended. */
  #given: WalPlace;
  #confirmedLsn = 0n;
  #isPaused = false;
  #failure: unknown = null;
  #wake: (() => void) | null = null;
  #toldAtMs = 0;
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

  /** Null while it works. */
  get failure(): unknown {
    return this.#failure;
  }

  /** Where the next page begins. */
  get given(): WalPlace {
    return this.#given;
  }

  /** Everything before it has arrived. */
  get receivedLsn(): bigint {
    return this.#reading.endLsn;
  }

  get buffered(): number {
    return this.#buffer.length;
  }

  /** When the oldest that waits here was committed, by the server's clock. */
  get oldestCommitMs(): number | null {
    return this.#buffer.first?.segment.committedAtMs ?? null;
  }

  /** The server had written more when it was last asked. */
  get isBehind(): boolean {
    return this.#reading.endLsn < this.#targetLsn;
  }

  /** Rows between what has arrived and `currentLsn`, if they lie as densely as those that came. */
  estimateUnread(currentLsn: bigint): number {
    const readBytes = Number(this.#reading.endLsn - this.#options.from.segment.lsn);
    const unreadBytes = Number(currentLsn - this.#reading.endLsn);
    if (unreadBytes <= 0 || readBytes <= 0) return 0;
    return Math.round((this.#rowsSeen / readBytes) * unreadBytes);
  }

  take(rows: number, bytes: number): { readonly rows: readonly LogRow<WalSegment>[]; readonly head: WalPlace } {
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

  /** Somebody still wants to read, even if there is no room for more. */
  touch(): void {
    this.#askedAtMs = performance.now();
  }

  /** Waits for rows, or until everything before `targetLsn` has arrived; not for longer than that. */
  async settleDown(targetLsn: bigint, timeoutMs: number): Promise<void> {
    this.#targetLsn = targetLsn;
    const startMs = performance.now();
    const deadlineMs = startMs + timeoutMs;
    const isOver = () => this.#buffer.length > 0 || this.#failure !== null || this.#reading.endLsn >= targetLsn;
    let hasAsked = false;
    while (!isOver()) {
      const nowMs = performance.now();
      if (nowMs >= deadlineMs) return;
      // A server that has sent everything says so by itself; asking each time would cost more than reading.
      const isTimeToAsk: boolean = !hasAsked && nowMs - startMs >= ASK_AFTER_MS;
      if (isTimeToAsk) this.#tell(true);
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

  /** Everything before the place is settled for good. */
  settle({ lsn, timeline }: WalSegment): void {
    if (timeline === this.#options.from.segment.timeline && lsn > this.#settledLsn) this.#settledLsn = lsn;
  }

  async close(): Promise<void> {
    clearInterval(this.#tick);
    this.#failure ??= new Error("Connection terminated: the reading was ended here");
    this.#wake?.();
    await this.#link.end();
  }

  onChange(buffer: Buffer, at: number): void {
    this.#heardAtMs = performance.now();
    try {
      readChange(buffer, at, this.#reading);
    } catch (error) {
      // Whatever comes behind it is not looked at, and nothing behind it is ever confirmed.
      this.onFailure(error);
      void this.#link.end();
    }
  }

  onAlive(endLsn: bigint, wantsReply: boolean): void {
    this.#heardAtMs = performance.now();
    this.#reading.reached(endLsn);
    if (wantsReply) this.#tell(false);
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
    // What cannot be read belongs to whoever comes by: no rule could find it, and it must not vanish.
    if (event.fault?.code !== "EVENT_UNREADABLE" && !this.#options.takes(event)) {
      this.#options.onUntaken(event);
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
      this.onFailure(new Error("Connection terminated: nobody asked for rows any more"));
      void this.#link.end();
      return;
    }
    const everyMs = senderTimeoutMs > 0 ? Math.min(TELL_EVERY_MS, senderTimeoutMs / 4) : TELL_EVERY_MS;
    const silentMs = this.#isPaused ? 0 : nowMs - this.#heardAtMs;
    if (silentMs > SILENCE_MAX_MS) {
      this.onFailure(new Error(`Connection terminated: the server was silent for ${SILENCE_MAX_MS} ms`));
      void this.#link.end();
    } else if (hasMoved || nowMs - this.#toldAtMs >= everyMs) this.#tell(silentMs > TELL_EVERY_MS);
  }

  /**
   * A place is confirmed only some time after its checkpoint was written: a standby that has the slot's new standing
   * should have the checkpoint as well by then.
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

  #tell(wantsReply: boolean): void {
    this.#toldAtMs = performance.now();
    // What was received is told too, or the server would ask again and again whether it was.
    this.#link.tell({ receivedLsn: this.receivedLsn, settledLsn: this.#confirmedLsn }, wantsReply);
  }
}
