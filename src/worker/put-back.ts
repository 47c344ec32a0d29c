/** Why a job is given back to the queue without an outcome. It spends no attempt and comes again by itself. */
export class PutBack extends Error {
  /** Null: as long as after any trouble. */
  readonly afterMs: number | null;

  constructor(reason: string, afterMs: number | null = null, options?: ErrorOptions) {
    super(reason, options);
    this.name = "PutBack";
    this.afterMs = afterMs;
  }
}

const FIRST_MS = 500;
const LONGEST_MS = 15_000;

/** The wait before the n-th further try of something that has to succeed some day. */
export const patienceMs = (tries: number) => Math.min(FIRST_MS * 2 ** Math.min(tries, 10), LONGEST_MS);
