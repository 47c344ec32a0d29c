import { RelayError } from "../../core/errors.ts";
import { parseTableName, quoteArray, quoteLiteral } from "../../postgres/identifiers.ts";
import type { Database } from "../../postgres/pool.ts";
import type { TransactionSettings } from "../../postgres/transaction.ts";
import {
  type HeaderFilter,
  headerMatches,
  holdsText,
  isId,
  payloadHolds,
  timeConditions,
  typeMatches,
} from "../events/event-filter.ts";
import { operationReadSettings } from "../events/event-source.ts";
import { destinationSql } from "../pipelines/pipelines.ts";
import { inGroup } from "./letter-group.ts";

/** Selects dead letters. All given conditions must match. */
export interface DeadLetterChoice {
  /** Ids of events, or of the letters themselves. */
  readonly ids?: readonly string[] | undefined;
  readonly source?: string | undefined;
  readonly pipeline?: string | undefined;
  readonly destination?: string | undefined;
  /** `*` matches any characters. */
  readonly type?: string | undefined;
  readonly key?: string | undefined;
  /** A key in which `*` matches any characters. */
  readonly keyLike?: string | undefined;
  readonly correlationId?: string | undefined;
  /** An id, a key, a correlation id, or a part of a key. */
  readonly word?: string | undefined;
  /** Text anywhere in the payload. */
  readonly text?: string | undefined;
  /** Text anywhere in the last error, ignoring case. */
  readonly error?: string | undefined;
  readonly headers?: readonly HeaderFilter[] | undefined;
  /** Range of the last failure: `since` is inclusive, `until` exclusive. */
  readonly since?: Date | undefined;
  readonly until?: Date | undefined;
  /** Fingerprints of errors, separated by commas. */
  readonly group?: string | undefined;
  /** Includes letters that were replayed or discarded. */
  readonly resolved?: boolean | undefined;
}

/** The SQL condition over `d`, a dead letter. */
export function choiceCondition(choice: DeadLetterChoice): string {
  const { correlationId, error, headers = [], ids, source, type, key, keyLike, group, resolved = false } = choice;
  const { destination, pipeline, text, word } = choice;
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
  if (pipeline !== undefined) conditions.push(`d.pipeline = ${quoteLiteral(pipeline)}`);
  if (destination !== undefined) conditions.push(`${destinationSql("d.pipeline")} = ${quoteLiteral(destination)}`);
  if (type !== undefined) conditions.push(typeMatches("d.event_type", type));
  if (key !== undefined) conditions.push(`d.event_key = ${quoteLiteral(key)}`);
  if (keyLike !== undefined) conditions.push(typeMatches("d.event_key", keyLike));
  if (correlationId !== undefined) conditions.push(`d.correlation_id = ${quoteLiteral(correlationId)}`);
  if (group !== undefined) conditions.push(inGroup("d.fingerprint", group));
  if (word !== undefined) {
    const columns = ["d.original_event_id", "d.event_key", "d.correlation_id"];
    const isIt = columns.map((column) => `${column} = ${quoteLiteral(word)}`);
    conditions.push(`(${[...isIt, holdsText("d.event_key", word)].join(" or ")})`);
  }
  conditions.push(...timeConditions("d.last_failed_at", choice));
  if (error !== undefined) conditions.push(holdsText("d.failure_reason", error));
  conditions.push(...headers.map((it) => headerMatches("d.headers", it)));
  if (text !== undefined) conditions.push(payloadHolds("d.payload", text));
  return conditions.length === 0 ? "true" : conditions.join(" and ");
}

/** Some conditions are checked letter by letter, which takes long with hundreds of thousands of them. */
const READ_MS = 15_000;

/** Settings of a transaction that reads dead letters. */
export function deadLetterReadSettings(database: Database, doing: string): TransactionSettings {
  return { ...operationReadSettings(database, doing), statementTimeoutMs: READ_MS };
}

/** A change needs an explicit selection, so that an empty filter does not change every dead letter by mistake. */
export function requireChoice(choice: DeadLetterChoice, all: boolean): void {
  const { resolved: _, ...chosen } = choice;
  if (all || Object.values(chosen).some((part) => part !== undefined)) return;
  throw new RelayError(
    "CONFIG_INVALID",
    "No dead letters are selected: give ids or a filter, or select all of them explicitly",
  );
}
