import type { LogPage, LogPass, LogRow } from "../log/log-kind.ts";
import type { WalSegment } from "./wal-place.ts";
import type { WalStream } from "./wal-stream.ts";

interface PassHost {
  onGiven(rows: readonly LogRow<WalSegment>[]): void;
  currentLsn(): Promise<bigint>;
  errorOf(failure: unknown): Error;
}

/** A server that decodes much which is not for us takes its time; the next pass goes on from there. */
const CATCH_UP_MS = 500;

const NOTHING: LogPage<WalSegment> = { rows: [], heads: new Map(), isEnd: true };

/** For a caller that has no lane. */
export const EMPTY_PASS: LogPass<WalSegment> = {
  next: () => Promise.resolve(NOTHING),
  leave: () => {},
  end: () => Promise.resolve(),
};

/** From where the stream stands to what is the end of the log when its buffer is first found empty. */
export class WalPass implements LogPass<WalSegment> {
  readonly #stream: WalStream;
  readonly #host: PassHost;
  #targetLsn: bigint | null = null;
  #isOver = false;

  constructor(stream: WalStream, host: PassHost) {
    this.#stream = stream;
    this.#host = host;
  }

  async next(rows: number, bytes: number): Promise<LogPage<WalSegment>> {
    if (this.#isOver) return NOTHING;
    if (this.#stream.buffered === 0) {
      this.#targetLsn ??= await this.#host.currentLsn();
      await this.#stream.settleDown(this.#targetLsn, CATCH_UP_MS);
    }
    // Meanwhile the lane may have left.
    if (this.#isOver) return NOTHING;
    // What has arrived is good; only then it matters that nothing more will.
    if (this.#stream.buffered === 0 && this.#stream.failure !== null) throw this.#host.errorOf(this.#stream.failure);
    const page = this.#stream.take(rows, bytes);
    this.#host.onGiven(page.rows);
    return { rows: page.rows, heads: new Map([[0, page.head]]), isEnd: page.rows.length === 0 };
  }

  leave(): void {
    this.#isOver = true;
  }

  end(): Promise<void> {
    this.#isOver = true;
    return Promise.resolve();
  }
}
