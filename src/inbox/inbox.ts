import { RelayError } from "../core/errors.ts";
import { parseTableName, quoteIdentifier, quoteTable } from "../postgres/identifiers.ts";
import { sessionOf, type TransactionHandle } from "../postgres/transaction-handle.ts";

export interface InboxOptions {
  /** `schema.table`, made by `inboxTableSql`. */
  readonly table: string;
  /** Who consumes: one table serves several, and each gets every message once. */
  readonly consumer?: string;
}

export interface Inbox {
  /**
   * Notes the message in the consumer's transaction: true the first time, false when it took effect before. While
   * another transaction has it under way, this waits for its end. Rejects with TRANSACTION_MISSING outside one.
   */
  accept(handle: TransactionHandle, messageId: string): Promise<boolean>;
  /** Does the work unless the message took effect before; then the answer is undefined. */
  once<Result>(handle: TransactionHandle, messageId: string, work: () => Promise<Result>): Promise<Result | undefined>;
  /** Forgets messages that are older, at most `rowsMax` in one call, and tells how many. */
  prune(handle: TransactionHandle, olderThanMs: number, rowsMax?: number): Promise<number>;
}

const DEFAULT_CONSUMER = "default";
const PRUNE_ROWS_MAX = 10_000;

/** What every destination hands over as the event's id makes a second delivery do nothing. */
export function createInbox(options: InboxOptions): Inbox {
  const table = quoteTable(parseTableName(options.table));
  const consumer = options.consumer ?? DEFAULT_CONSUMER;
  const probe = `lock table only ${table} in row exclusive mode`;

  async function accept(handle: TransactionHandle, messageId: string): Promise<boolean> {
    if (typeof messageId !== "string" || messageId === "" || messageId.includes("\0")) {
      throw new RelayError("EVENT_INVALID", "The message's id is no text, so it cannot be told from others");
    }
    const session = sessionOf(handle);
    await session.requireTransaction(probe);
    const rows = await session.rows(
      (place) => `insert into ${table} (consumer, message_id) values (${place(1)}::text, ${place(2)}::text)
on conflict do nothing returning 1 as accepted`,
      [consumer, messageId],
    );
    if (session.isStillOpen()) return rows.length > 0;
    throw new RelayError("TRANSACTION_MISSING", "The transaction ended before the message was noted");
  }

  async function once<Result>(handle: TransactionHandle, messageId: string, work: () => Promise<Result>) {
    return (await accept(handle, messageId)) ? await work() : undefined;
  }

  async function prune(handle: TransactionHandle, olderThanMs: number, rowsMax = PRUNE_ROWS_MAX): Promise<number> {
    const session = sessionOf(handle);
    const [row] = await session.rows(
      (place) => `with old as (
  delete from ${table} where (consumer, message_id) in (
    select consumer, message_id from ${table}
    where consumer = ${place(1)}::text and received_at < pg_catalog.now() - ${place(2)}::text::float8 * interval '1 millisecond'
    limit ${place(3)}::text::int)
  returning 1)
select pg_catalog.count(*)::int as pruned from old`,
      [consumer, String(olderThanMs), String(rowsMax)],
    );
    return Number(row?.pruned ?? 0);
  }

  return { accept, once, prune };
}

/** For a migration of the consumer's own; running it twice changes nothing. */
export function inboxTableSql(table: string): string {
  const name = parseTableName(table);
  const quoted = quoteTable(name);
  return `create schema if not exists ${quoteIdentifier(name.schema)};
create table if not exists ${quoted} (
  consumer text not null,
  message_id text not null,
  received_at timestamptz not null default now(),
  primary key (consumer, message_id)
);
create index if not exists ${quoteIdentifier(`${name.table}_received`.slice(0, 63))} on ${quoted} (received_at);
`;
}
