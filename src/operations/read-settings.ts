import type { Database } from "../postgres/pool.ts";
import type { TransactionSettings } from "../postgres/transaction.ts";

/** An operator waits for the response, and the delivery must not be affected. */
const READ_MS = 3_000;

export function operationReadSettings(database: Database, doing: string, table?: string): TransactionSettings {
  return {
    context: database.errorContext(doing, table),
    statementTimeoutMs: READ_MS,
    lockTimeoutMs: READ_MS,
    readOnly: true,
    settings: { jit: "off", work_mem: "32MB", max_parallel_workers_per_gather: "0" },
  };
}
