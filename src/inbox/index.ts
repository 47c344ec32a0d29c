export type { TransactionHandle } from "../postgres/transaction-handle.ts";
export { createInbox, type Inbox, type InboxOptions, inboxTableSql } from "./inbox.ts";
