import { RelayError } from "../core/errors.ts";
import type { ColumnInfo } from "./column-names.ts";
import { displayTable, type TableName } from "./identifiers.ts";

interface Wanted {
  /** What the column is for, used in messages: "the event's id". */
  readonly role: string;
  /** The user's name for it. Undefined: try the candidates; null: there is none. */
  readonly named?: string | null | undefined;
  readonly candidates: readonly string[];
  readonly fits?: (column: ColumnInfo) => boolean;
  /** The accepted type, used in messages: "boolean". */
  readonly type?: string;
}

/** Finds columns by name and type. Its errors name the table, the column and what was searched. */
export class ColumnFinder {
  readonly #table: TableName;
  readonly #columns: ReadonlyMap<string, ColumnInfo>;

  constructor(table: TableName, columns: readonly ColumnInfo[]) {
    this.#table = table;
    this.#columns = new Map(columns.map((column) => [column.name, column]));
  }

  /** Throws COLUMN_MISSING or COLUMN_MISTYPED unless a column fits. */
  require(wanted: Wanted): ColumnInfo {
    const column = this.find(wanted, "strict");
    if (column) return column;
    throw this.missing(wanted.role, wanted.candidates);
  }

  /**
   * A column named by the user must exist and fit. A candidate of another type is an error when strict; otherwise it is
   * skipped, because the table may use the name for something else.
   */
  find(wanted: Wanted, types: "strict" | "lenient" = "lenient"): ColumnInfo | null {
    if (wanted.named === null) return null;
    if (wanted.named !== undefined) return this.#named(wanted.named, wanted);
    for (const candidate of wanted.candidates) {
      const column = this.#columns.get(candidate);
      if (!column) continue;
      if (wanted.fits?.(column) ?? true) return column;
      if (types === "strict") throw this.#mistyped(column, wanted);
    }
    return null;
  }

  has(name: string): boolean {
    return this.#columns.has(name);
  }

  first(fits: (column: ColumnInfo) => boolean): ColumnInfo | null {
    for (const column of this.#columns.values()) if (fits(column)) return column;
    return null;
  }

  /** The error for a column that was not found. */
  missing(role: string, looked: readonly string[]): RelayError {
    const there = [...this.#columns.keys()].join(", ");
    const what = `${displayTable(this.#table)} has no column for ${role}: tried ${looked.join(", ")}; it has ${there}`;
    return new RelayError("COLUMN_MISSING", what);
  }

  #named(name: string, wanted: Wanted): ColumnInfo {
    const column = this.#columns.get(name);
    if (!column) throw this.missing(wanted.role, [name]);
    if (wanted.fits && !wanted.fits(column)) throw this.#mistyped(column, wanted);
    return column;
  }

  #mistyped(column: ColumnInfo, { role, type }: Wanted): RelayError {
    const what = `Column ${column.name} of ${displayTable(this.#table)} (${role}) is ${column.type}, not ${type}`;
    return new RelayError("COLUMN_MISTYPED", what);
  }
}
