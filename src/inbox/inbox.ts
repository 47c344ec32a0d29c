import { RelayError } from "../core/errors.ts";
import { catalogOperator, parseTableName, quoteIdentifier, quoteTable } from "../postgres/identifiers.ts";
import { sessionOf, type TransactionHandle } from "../postgres/transaction-handle.ts";
import type { TransactionRunner } from "./pg-transaction.ts";

/** Options of `createInbox`. */
export interface InboxOptions {
  /** `schema.table`, created by `inboxTableSql`. */
  readonly table: string;
  /** Name of the consumer: one table serves several, and each gets every message once. */
  readonly consumer?: string;
}

/** Options of an inbox that opens its transactions itself. */
export interface ConsumingInboxOptions<Handle extends TransactionHandle> extends InboxOptions {
  /** How your library runs a transaction: `pgTransaction(pool)`, `(work) => db.transaction(work)`. */
  readonly transaction: TransactionRunner<Handle>;
}

/** Deduplicates messages in the consumer's own database. */
export interface Inbox {
  /**
   * Records the message in the consumer's transaction: true the first time, false when a committed transaction recorded
   * it before. Waits for the end of a transaction that is recording it. Rejects with
   * TRANSACTION_MISSING outside one.
   */
  accept(handle: TransactionHandle, messageId: string): Promise<boolean>;
  /** Runs the work unless the message took effect before; then it resolves to undefined. */
  once<Result>(handle: TransactionHandle, messageId: string, work: () => Promise<Result>): Promise<Result | undefined>;
  /** Deletes older messages, at most `rowsMax` per call, and returns how many. */
  prune(handle: TransactionHandle, olderThanMs: number, rowsMax?: number): Promise<number>;
}

/** An inbox that opens its transactions itself. */
export interface ConsumingInbox<Handle extends TransactionHandle> extends Inbox {
  /**
   * Runs the handler in a transaction that also records the message's id, unless the message took effect before: then it
   * resolves to undefined. Acknowledge the message once it has resolved. When it rejects, nothing took effect: let the
   * broker deliver it again.
   */
  consume<Message extends { readonly id: string }, Result>(
    message: Message,
    handler: (message: Message, transaction: Handle) => Promise<Result>,
  ): Promise<Result | undefined>;
}

const DEFAULT_CONSUMER = "default";
const PRUNE_ROWS_MAX = 10_000;

const [EQ, LT, MINUS, TIMES] = ["=", "<", "-", "*"].map(catalogOperator);

/** Makes a repeated delivery have no effect, by the event's id that every destination passes on. */
export function createInbox<Handle extends TransactionHandle>(
  options: ConsumingInboxOptions<Handle>,
): ConsumingInbox<Handle>;
export function createInbox(options: InboxOptions): Inbox;
export function createInbox(
  options: InboxOptions & Partial<ConsumingInboxOptions<TransactionHandle>>,
): Inbox | ConsumingInbox<TransactionHandle> {
  const inbox = plainInbox(options);
  const { transaction } = options;
  if (transaction === undefined) return inbox;
  const consume: ConsumingInbox<TransactionHandle>["consume"] = (message, handler) =>
    transaction((handle) => inbox.once(handle, message.id, () => handler(message, handle)));
  return { ...inbox, consume };
}

function plainInbox(options: InboxOptions): Inbox {
  const table = quoteTable(parseTableName(options.table));
  const consumer = options.consumer ?? DEFAULT_CONSUMER;
  const probe = `lock table only ${table} in row exclusive mode`;

  async function accept(handle: TransactionHandle, messageId: string): Promise<boolean> {
    if (typeof messageId !== "string" || messageId === "" || messageId.includes("\0")) {
      throw new RelayError(
        "EVENT_INVALID",
        "The message id is empty or not a text, so duplicates cannot be detected. Pass the event's id",
      );
    }
    const session = sessionOf(handle);
    await session.requireTransaction(probe);
    const accepted = await session.column(
      (place) => `insert into ${table} (consumer, message_id) values (${place(1)}::text, ${place(2)}::text)
on conflict do nothing returning 1 as accepted`,
      [consumer, messageId],
    );
    if (session.isStillOpen()) return accepted.length > 0;
    throw new RelayError("TRANSACTION_MISSING", "The transaction ended before the message was recorded");
  }

  async function once<Result>(handle: TransactionHandle, messageId: string, work: () => Promise<Result>) {
    return (await accept(handle, messageId)) ? await work() : undefined;
  }

  async function prune(handle: TransactionHandle, olderThanMs: number, rowsMax = PRUNE_ROWS_MAX): Promise<number> {
    const session = sessionOf(handle);
    const [pruned] = await session.column(
      (place) => `with old as (
  delete from ${table} i using (
    select consumer, message_id from ${table}
    where consumer ${EQ} ${place(1)}::text
      and received_at ${LT} (pg_catalog.now() ${MINUS} (${place(2)}::text::float8 ${TIMES} interval '1 millisecond'))
    limit ${place(3)}::text::int) o
  where i.consumer ${EQ} o.consumer and i.message_id ${EQ} o.message_id
  returning 1)
select pg_catalog.count(*)::int as pruned from old`,
      [consumer, String(olderThanMs), String(rowsMax)],
    );
    return Number(pruned ?? 0);
  }

  return { accept, once, prune };
}

/** SQL for a migration of the consumer; running it twice changes nothing. */
export function inboxTableSql(table: string): string {
  const name = parseTableName(table);
  const quoted = quoteTable(name);
  return `create schema if not exists ${quoteIdentifier(name.schema)};
create table if not exists ${quoted} (
  consumer text not null,
  message_id text not null,
  received_at timestamptz not null default pg_catalog.now(),
  primary key (consumer, message_id)
);
create index if not exists ${quoteIdentifier(`${name.table}_received`.slice(0, 63))} on ${quoted} (received_at);
`;
}
