import { reasonOf } from "../../core/errors.ts";
import { ownershipOf } from "../../postgres/grants.ts";
import { displayTable, quoteTable, type TableName } from "../../postgres/identifiers.ts";
import { needsOf } from "../../postgres/managed/log-needs.ts";
import { isoOf, partitionFindings, upkeepFault } from "../../postgres/managed/managed-partitions.ts";
import { type ManagedFacts, readManaged } from "../../postgres/managed/managed-table.ts";
import type { Row } from "../../postgres/session.ts";
import { transaction } from "../../postgres/transaction.ts";
import { operationReadSettings } from "../events/event-source.ts";
import type { DoctorSubject, Finding } from "./finding.ts";
import { ownedTables } from "./needed-grants.ts";

const DAY_MS = 86_400_000;
/** Longer than any transaction should be. */
const OPEN_MS = 5 * 60_000;
/** Losses longer ago were reported often enough. */
const LOST_DAYS = 7;

type RawFinding = Omit<Finding, "check">;

/**
 * Checks what a managed outbox needs besides its rows: future partitions, subscribers that keep up, and short
 * transactions of writers.
 */
export async function checkManaged(
  subject: DoctorSubject,
  table: TableName,
  openMs = OPEN_MS,
): Promise<readonly Finding[]> {
  const { database } = subject;
  const facts = await readManaged(database, table);
  if (facts === null) return [missing(table)];
  const found: RawFinding[] = [
    ...(await upkeepFindings(subject, facts)),
    ...(await partitionFindings(database, facts, DAY_MS)),
    ...(await retentionFindings(subject, facts)),
    ...(await sessionFindings(subject, facts, openMs)),
    ...wakeUpFindings(facts),
  ];
  return found.map(({ severity, what, fix }) => ({ severity, check: "managed", what, fix }));
}

/** Whether the role can do the upkeep: the checks try it where that is harmless, and read the catalogue otherwise. */
async function upkeepFindings({ database }: DoctorSubject, facts: ManagedFacts): Promise<RawFinding[]> {
  const { table } = facts;
  const fault = await upkeepFault(database, facts);
  const settings = operationReadSettings(database, "reading the owners", displayTable(table));
  const { owned, role } = await transaction(database.pool, settings, async (session) => {
    const [row] = await session.rows("select current_user::text");
    return { owned: await ownedTables(session, [table]), role: row?.[0] ?? database.role };
  });
  // Trying to drop a partition would block the writers, so the check compares owners instead.
  const foreign = owned.flatMap(({ parts }) => parts.filter((it) => !it.isOwn)).map(displayTable);
  if (fault === null && foreign.length === 0) return [];
  const why =
    fault === null
      ? `the role ${role} does not own ${foreign.join(", ")} and cannot drop old partitions`
      : (reasonOf(fault).split(/ \[[A-Z_]+\] /)[0] ?? "");
  const fix = ownershipOf(role, owned).join("\n");
  return [{ severity: "error", what: `The upkeep of ${displayTable(table)} fails: ${why}`, fix }];
}

function missing(table: TableName): Finding {
  const what = `There is no managed outbox ${displayTable(table)}`;
  return { severity: "error", check: "managed", what, fix: "outbox-relay migrate up" };
}

/** Which pipeline blocks the drop of the oldest expired partition, and since when. */
async function retentionFindings({ database, retentionMs }: DoctorSubject, facts: ManagedFacts): Promise<RawFinding[]> {
  const { table, nowMs, partitions } = facts;
  if (retentionMs === null) {
    const what = `${displayTable(table)} keeps its events forever: RETENTION is not set`;
    return partitions.length < KEPT_PARTITIONS ? [] : [{ severity: "warning", what, fix: "RETENTION=7d" }];
  }
  const oldest = partitions.find(({ range }) => range !== null && range.toMs <= nowMs - retentionMs);
  if (oldest === undefined || oldest.range === null) return [];
  const since = isoOf(oldest.range.toMs + retentionMs);
  const { unread } = await needsOf(database, table, oldest.name, 1);
  return unread.map(({ pipeline, settledAt }) => ({
    severity: "warning" as const,
    what: `${pipeline} has blocked the drop of ${displayTable(oldest.name)} since ${since}: it has not read it (last progress: ${settledAt ?? "never"})`,
    fix: `outbox-relay status shows why it does not progress. If it is no longer needed: delete from ${database.tables.pipelines} where name = '${pipeline.replaceAll("'", "''")}';`,
  }));
}

/** Daily partitions of a few months. */
const KEPT_PARTITIONS = 100;

async function sessionFindings(
  { database }: DoctorSubject,
  { table }: ManagedFacts,
  openMs: number,
): Promise<RawFinding[]> {
  const settings = operationReadSettings(database, "reading the writers", displayTable(table));
  const [open, lost] = await transaction(database.pool, settings, async (session) => [
    await session.rows(
      `select distinct a.pid, a.usename, a.application_name, a.state,
         floor(extract(epoch from clock_timestamp() - a.xact_start) / 60)::int
       from pg_catalog.pg_locks l join pg_catalog.pg_stat_activity a on a.pid = l.pid
       where l.locktype = 'relation' and l.relation = $1::regclass and l.mode = 'RowExclusiveLock' and l.granted
         and l.database = (select oid from pg_catalog.pg_database where datname = current_database())
         and a.xact_start < clock_timestamp() - interval '${openMs} milliseconds'
       order by 5 desc`,
      [quoteTable(table)],
    ),
    await lostEvents(session.rows.bind(session), database.tables.technicalEvents, table),
  ]);
  return [...open.map((row) => openWriter(row, table)), ...lost.map(lostFinding)];
}

function openWriter([pid, role, application, state, minutes]: Row, table: TableName): RawFinding {
  const who = `${role}${application ? `, ${application}` : ""}, pid ${pid}, ${state}`;
  return {
    severity: "warning",
    what: `A writer of ${displayTable(table)} has been in its transaction for ${minutes} minutes (${who}): no event is lost, its events are read after it commits, but until then no partition can be dropped`,
    fix: `select pg_terminate_backend(${pid}); -- rolls back its writes`,
  };
}

/** Empty without the relay's schema: another check reports that. */
async function lostEvents(
  rows: (text: string, values?: readonly unknown[]) => Promise<readonly Row[]>,
  technicalEvents: string,
  table: TableName,
): Promise<readonly Row[]> {
  const [there] = await rows("select to_regclass($1) is not null", [technicalEvents]);
  if (there?.[0] !== "t") return [];
  return await rows(
    `select coalesce(e.pipeline, 'some subscriber'), sum((e.detail ->> 'rows')::bigint), max(e.at)::text
     from ${technicalEvents} e
     where e.name = 'EventsDroppedUnread' and e.at > clock_timestamp() - interval '${LOST_DAYS} days'
       and e.detail ->> 'source' = $1
     group by 1 order by 1`,
    [displayTable(table)],
  );
}

function lostFinding([pipeline, rows, at]: Row): RawFinding {
  return {
    severity: "error",
    what: `rows were dropped unread: ${rows} events that ${pipeline} had not read, the last at ${at}`,
    fix: "The subscriber was further behind than its limit. Send it those events by other means, or raise the limit.",
  };
}

/** A missing wake-up is a choice; half of one is a defect. */
function wakeUpFindings({ table, hasWakeUp, hasWakeUpFunction }: ManagedFacts): RawFinding[] {
  if (hasWakeUp || !hasWakeUpFunction) return [];
  const what = `The wake-up trigger of ${displayTable(table)} is gone or disabled: an idle relay notices an event only at its next poll`;
  return [{ severity: "warning", what, fix: "MANAGED_WAKE_UP=true outbox-relay migrate up" }];
}
