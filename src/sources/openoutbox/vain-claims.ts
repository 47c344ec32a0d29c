import { RelayError } from "../../core/errors.ts";
import { displayTable, type TableName } from "../../postgres/identifiers.ts";

/** Rows may be locked for a while; what waits for so long and cannot be claimed is no accident. */
const VAIN_MS = 10_000;

/** Notices rows that can be read and not claimed: the update that claims them changes nothing. */
export class VainClaims {
  readonly #table: TableName;
  readonly #nowMs: () => number;
  #sinceMs: number | null = null;

  constructor(table: TableName, nowMs: () => number = () => performance.now()) {
    this.#table = table;
    this.#nowMs = nowMs;
  }

  /** Throws ROW_UNMARKED when nothing could be claimed for long although `isWaiting` says that something is there. */
  async claimed(count: number, isWaiting: () => Promise<boolean>): Promise<void> {
    if (count > 0 || !(await isWaiting())) {
      this.#sinceMs = null;
      return;
    }
    this.#sinceMs ??= this.#nowMs();
    const forMs = this.#nowMs() - this.#sinceMs;
    if (forMs < VAIN_MS) return;
    const what = [
      `Events of ${displayTable(this.#table)} wait and could not be claimed for ${Math.round(forMs / 1_000)} s:`,
      "the update that claims a row changes none. Usual causes: a trigger on UPDATE that returns NULL,",
      "row-level security without an UPDATE policy for the relay's role, a transaction that keeps the rows locked.",
    ];
    throw new RelayError("ROW_UNMARKED", what.join(" "));
  }
}
