import { RelayError } from "../core/errors.ts";
import { parseTableName, quoteArray, quoteLiteral } from "../postgres/identifiers.ts";
import type { Database } from "../postgres/pool.ts";
import type { TransactionSettings } from "../postgres/transaction.ts";
import { isId, payloadHolds, timeConditions, typeMatches } from "./event-filter.ts";
import { operationReadSettings } from "./event-source.ts";

/** Which dead letters are meant. All that is given must be true of one. */
export interface DeadLetterChoice {
  /** Of the events, or of the letters themselves. */
  readonly ids?: readonly string[] | undefined;
  readonly source?: string | undefined;
  /** `*` stands for any run of characters. */
  readonly type?: string | undefined;
  readonly key?: string | undefined;
  readonly correlationId?: string | undefined;
  /** An id, a key or a correlation id. */
  readonly word?: string | undefined;
  /** Somewhere in the payload. */
  readonly text?: string | undefined;
  /** By the time of the last failure: from, inclusive, and to, exclusive. */
  readonly since?: Date | undefined;
  readonly until?: Date | undefined;
  /** The fingerprint of their error. */
  readonly group?: string | undefined;
  /** Also those that were replayed or discarded. */
  readonly resolved?: boolean | undefined;
}

/** The condition over `d`, a dead letter. */
export function choiceCondition(choice: DeadLetterChoice): string {
  const { correlationId, ids, source, type, key, group, resolved = false, text, word } = choice;
  const conditions = resolved ? [] : ["d.resolved_at is null"];
  if (ids !== undefined) {
    const events = `d.original_event_id = any(${quoteArray(ids.filter((id) => !id.includes("\0")))}::text[])`;
    const letters = ids.filter((id) => isId("uuid", id));
    conditions.push(letters.length === 0 ? events : `(${events} or d.id = any(${quoteArray(letters)}::uuid[]))`);
  }
  if (source !== undefined) {
    const { schema, table } = parseTableName(source);
    conditions.push(`d.source_schema = ${quoteLiteral(schema)} and d.source_table = ${quoteLiteral(table)}`);
  }
  if (type !== undefined) conditions.push(typeMatches("d.event_type", type));
  if (key !== undefined) conditions.push(`d.event_key = ${quoteLiteral(key)}`);
  if (correlationId !== undefined) conditions.push(`d.correlation_id = ${quoteLiteral(correlationId)}`);
  if (group !== undefined) conditions.push(`d.fingerprint = ${quoteLiteral(group)}`);
  if (word !== undefined) {
    const columns = ["d.original_event_id", "d.event_key", "d.correlation_id"];
    conditions.push(`(${columns.map((column) => `${column} = ${quoteLiteral(word)}`).join(" or ")})`);
  }
  conditions.push(...timeConditions("d.last_failed_at", choice));
  if (text !== undefined) conditions.push(payloadHolds("d.payload", text));
  return conditions.length === 0 ? "true" : conditions.join(" and ");
}

/** Every error is looked at letter by letter: with hundreds of thousands of them that takes its time. */
const READ_MS = 15_000;

export function deadLetterReadSettings(database: Database, doing: string): TransactionSettings {
  return { ...operationReadSettings(database, doing), statementTimeoutMs: READ_MS };
}

/** A change must be asked for with something that chooses; `all` is a choice too, an oversight is not. */
export function requireChoice(choice: DeadLetterChoice, all: boolean): void {
  const { resolved: _, ...chosen } = choice;
  if (all || Object.values(chosen).some((part) => part !== undefined)) return;
  throw new RelayError(
    "CONFIG_INVALID",
    "Nothing says which dead letters are meant: name ids, a filter, or all of them",
  );
}
