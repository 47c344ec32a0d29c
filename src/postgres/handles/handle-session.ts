import { RelayError } from "../../core/errors.ts";

/**
 * Builds a statement from the placeholders of its parameters, counted from 1; all are texts. It returns at most one
 * column.
 */
export type Statement = (place: (at: number) => string) => string;

/** The interface through which the writer and the inbox use a handle. */
export interface HandleSession {
  /** The first column of each row. Column names are not used, since libraries can be configured to rename columns. */
  column(statement: Statement, values: readonly (string | null)[]): Promise<readonly unknown[]>;
  /**
   * Rejects with TRANSACTION_MISSING unless a transaction is open; `probe` is sent only where the library does not
   * know. No SQL expression knows the answer, since a single statement runs in a transaction too.
   */
  requireTransaction(probe: string): Promise<void>;
  /** False when the library reports that the transaction ended meanwhile: the last statement ran outside it. */
  isStillOpen(): boolean;
}

/** How the handles of one library are recognized. */
export interface HandleKind {
  /** What to pass, for the error about an unknown handle. */
  readonly supported: string;
  /**
   * Null: the handle is not of this library. Throws TRANSACTION_MISSING when it is of this library but not a
   * transaction.
   */
  session(given: Given): HandleSession | null;
}

/** An unknown handle, whose properties can be read safely. */
export type Given = Readonly<Record<PropertyKey, unknown>>;

/** PostgreSQL's own placeholders. */
export const numbered = (at: number): string => `$${at}`;

/** The error for a handle that is not an open transaction. */
export function refused(what: string): RelayError {
  return new RelayError("TRANSACTION_MISSING", `Refused to write outside a transaction: ${what}`);
}

/** Whether the value can be called. */
export function isFunction(value: unknown): value is (...values: never[]) => unknown {
  return typeof value === "function";
}

/** The first column of each row. */
export function firstColumn(rows: unknown): readonly unknown[] {
  if (!Array.isArray(rows)) return [];
  return rows.map((row: unknown) => Object.values(Object(row) as object)[0]);
}

/** For drivers that refuse statements after the end of a transaction: no check is needed, and no gap is possible. */
export const KNOWN_OPEN = { requireTransaction: async () => {}, isStillOpen: () => true } as const;

const OPEN = "T";
/** The next statement fails anyway, with the server's own message. */
const FAILED = "E";
const NO_TRANSACTION = "25P01";

/** `status` is the driver's knowledge, null where it has none; then `ask` sends the probe. */
export function driverState(
  status: () => string | null,
  ask: (probe: string) => Promise<unknown>,
): Pick<HandleSession, "requireTransaction" | "isStillOpen"> {
  return {
    requireTransaction: async (probe) => {
      const state = status();
      if (state === OPEN || state === FAILED) return;
      // Ask the server in all other cases too: a BEGIN that was not awaited may be under way.
      await ask(probe).catch((error: unknown) => {
        throw hasCode(error, NO_TRANSACTION) ? refused("there is no BEGIN before it") : error;
      });
    },
    isStillOpen: () => (status() ?? OPEN) === OPEN,
  };
}

const CAUSES_MAX = 5;

/** Whether the server's code is this one or begins with it; ORMs wrap the driver's error. */
export function hasCode(error: unknown, code: string): boolean {
  let at: unknown = error;
  for (let depth = 0; depth < CAUSES_MAX && at instanceof Error; depth += 1) {
    if ("code" in at && typeof at.code === "string" && at.code.startsWith(code)) return true;
    at = at.cause;
  }
  return false;
}

/** For error messages: `null`, `an object of the class Foo`, `a function`. */
export function describeGiven(given: unknown): string {
  if (given === null || given === undefined) return String(given);
  if (typeof given === "function") return given.name === "" ? "a function" : `the function ${given.name}`;
  if (typeof given !== "object") return `a ${typeof given}`;
  const name = (Object.getPrototypeOf(given) as { constructor?: { name?: unknown } } | null)?.constructor?.name;
  if (typeof name === "string" && name !== "" && name !== "Object") return `an object of the class ${name}`;
  const keys = Object.keys(given).slice(0, 5).join(", ");
  return keys === "" ? "an empty object" : `an object with ${keys}`;
}
