import { RelayError } from "../../../core/errors.ts";
import { displayTable, type TableName } from "../../../postgres/identifiers.ts";

/** Rows may be locked for a short time. Pending rows that cannot be claimed for this long have another cause. */
const UNCLAIMABLE_MS = 10_000;

/** Detects rows that can be read but not claimed: the update that claims them changes nothing. */
export class UnclaimableRows {
  readonly #table: TableName;
  readonly #nowMs: () => number;
  #sinceMs: number | null = null;

  constructor(table: TableName, nowMs: () => number = () => performance.now()) {
    this.#table = table;
    this.#nowMs = nowMs;
  }

  /** Throws ROW_UNMARKED when no claim succeeded for long although `isWaiting` sees pending events. */
  async claimed(count: number, isWaiting: () => Promise<boolean>): Promise<void> {
    if (count > 0 || !(await isWaiting())) {
      this.#sinceMs = null;
      return;
    }
    this.#sinceMs ??= this.#nowMs();
    const forMs = this.#nowMs() - this.#sinceMs;
    if (forMs < UNCLAIMABLE_MS) return;
    const what = [
      `Pending events of ${displayTable(this.#table)} could not be claimed for ${Math.round(forMs / 1_000)} s:`,
      "the update that claims a row changes none. Usual causes: a trigger on UPDATE that returns NULL,",
      "row-level security without an UPDATE policy for the relay's role, a transaction that keeps the rows locked.",
    ];
    throw new RelayError("ROW_UNMARKED", what.join(" "));
  }
}
