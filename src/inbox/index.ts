export { createInbox, type Inbox, type InboxOptions, inboxTableSql } from "./inbox.ts";
