export { isRelayError, RelayError } from "../core/errors.ts";
export type { TransactionHandle } from "../postgres/transaction-handle.ts";
export type { NewEvent } from "./new-event.ts";
export { createOutbox, type Outbox, type OutboxOptions } from "./outbox.ts";
export { outboxTableSql } from "./table-sql.ts";
