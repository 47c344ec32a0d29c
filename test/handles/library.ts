import type { TransactionHandle } from "../../src/postgres/transaction-handle.ts";

/** A way into PostgreSQL that applications use, opened on a database with the table `shop.orders`. */
export interface Library extends AsyncDisposable {
  /** In a transaction of the library: commits, or rolls back when the work rejects. */
  transaction(work: Work): Promise<unknown>;
  /** Within one of its transactions, by the library's own savepoint; absent where it has none. */
  savepoint?(tx: TransactionHandle, work: Work): Promise<unknown>;
  /** Handles that stand for no transaction, each with what the refusal has to name. */
  readonly refused: readonly (readonly [handle: unknown, named: RegExp])[];
}

/** `insertOrder` adds a row to `shop.orders` in the way of the library, within the transaction. */
export type Work = (tx: TransactionHandle, insertOrder: (id: string) => Promise<unknown>) => Promise<unknown>;

export type OpenLibrary = (url: string) => Promise<Library>;
