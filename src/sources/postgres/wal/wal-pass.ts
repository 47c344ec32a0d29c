import type { LogPage, LogPass, LogRow } from "../log/log-kind.ts";
import type { WalSegment } from "./wal-position.ts";
import type { WalStream } from "./wal-stream.ts";

interface PassHost {
  onGiven(rows: readonly LogRow<WalSegment>[]): void;
  currentLsn(): Promise<bigint>;
  errorOf(failure: unknown): Promise<Error>;
}

/** How long a page waits for a server that decodes many changes of other tables; the next pass continues from there. */
const CATCH_UP_MS = 500;

const NOTHING: LogPage<WalSegment> = { rows: [], heads: new Map(), isEnd: true };

/** For a caller that has no lane. */
export const EMPTY_PASS: LogPass<WalSegment> = {
  next: () => Promise.resolve(NOTHING),
  leave: () => {},
  end: () => Promise.resolve(),
};

/** Reads from the stream's position to the end of the log as it is when the buffer is first empty. */
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
    // The lane may have left meanwhile.
    if (this.#isOver) return NOTHING;
    // Rows that have arrived are valid, so return them before the failure.
    const { buffered, failure } = this.#stream;
    if (buffered === 0 && failure !== null) throw await this.#host.errorOf(failure);
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
