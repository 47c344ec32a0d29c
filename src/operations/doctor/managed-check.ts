import { displayTable, quoteTable, type TableName } from "../../postgres/identifiers.ts";
import { needsOf } from "../../postgres/managed/log-needs.ts";
import { isoOf, partitionFindings } from "../../postgres/managed/managed-partitions.ts";
import { type ManagedFacts, readManaged } from "../../postgres/managed/managed-table.ts";
import type { Row } from "../../postgres/session.ts";
import { transaction } from "../../postgres/transaction.ts";
import { operationReadSettings } from "../event-source.ts";
import type { DoctorSubject, Finding } from "./finding.ts";

const DAY_MS = 86_400_000;
/** Longer than any transaction should be. */
const OPEN_MS = 5 * 60_000;
/** What was lost longer ago was told often enough. */
const LOST_DAYS = 7;

type Told = Omit<Finding, "check">;

/** What a managed outbox needs beside its rows: partitions ahead, subscribers that keep up, writers that end. */
export async function checkManaged(
  subject: DoctorSubject,
  table: TableName,
  openMs = OPEN_MS,
): Promise<readonly Finding[]> {
  const { database } = subject;
  const facts = await readManaged(database, table);
  if (facts === null) return [missing(table)];
  const told: Told[] = [
    ...(await partitionFindings(database, facts, DAY_MS)),
    ...(await retentionFindings(subject, facts)),
    ...(await sessionFindings(subject, facts, openMs)),
    ...wakeUpFindings(facts),
  ];
  return told.map(({ severity, what, fix }) => ({ severity, check: "managed", what, fix }));
}

function missing(table: TableName): Finding {
  const what = `There is no managed outbox ${displayTable(table)}`;
  return { severity: "error", check: "managed", what, fix: "outbox-relay migrate up" };
}

/** Who keeps the oldest partition that is past its retention, and since when it could be gone. */
async function retentionFindings({ database, retentionMs }: DoctorSubject, facts: ManagedFacts): Promise<Told[]> {
  const { table, nowMs, partitions } = facts;
  if (retentionMs === null) {
    const what = `${displayTable(table)} keeps its events for ever: RETENTION is not set`;
    return partitions.length < KEPT_PARTITIONS ? [] : [{ severity: "warning", what, fix: "RETENTION=7d" }];
  }
  const oldest = partitions.find(({ range }) => range !== null && range.toMs <= nowMs - retentionMs);
  if (oldest === undefined || oldest.range === null) return [];
  const since = isoOf(oldest.range.toMs + retentionMs);
  const { unread } = await needsOf(database, table, oldest.name, 1);
  return unread.map(({ pipeline, settledAt }) => ({
    severity: "warning" as const,
    what: `${pipeline} keeps ${displayTable(oldest.name)} from being dropped since ${since}: it has not read it (last progress: ${settledAt ?? "never"})`,
    fix: `outbox-relay status tells why it does not go on. If nobody needs it any more: delete from ${database.tables.pipelines} where name = '${pipeline.replaceAll("'", "''")}';`,
  }));
}

/** A few months of days. */
const KEPT_PARTITIONS = 100;

async function sessionFindings({ database }: DoctorSubject, { table }: ManagedFacts, openMs: number): Promise<Told[]> {
  const settings = operationReadSettings(database, "looking at the writers", displayTable(table));
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

function openWriter([pid, role, application, state, minutes]: Row, table: TableName): Told {
  const who = `${role}${application ? `, ${application}` : ""}, pid ${pid}, ${state}`;
  return {
    severity: "warning",
    what: `A writer of ${displayTable(table)} has been in its transaction for ${minutes} minutes (${who}): nothing is lost, its events come when it commits, but no partition can be dropped meanwhile`,
    fix: `select pg_terminate_backend(${pid}); -- undoes what it wrote`,
  };
}

/** Nothing where the relay's schema is not there: another check tells so. */
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

function lostFinding([pipeline, rows, at]: Row): Told {
  return {
    severity: "error",
    what: `rows were dropped unread: ${rows} events that ${pipeline} had not read, the last at ${at}`,
    fix: "The subscriber was further behind than its limit. Bring those events to it by other means, or raise the limit.",
  };
}

/** That there is none is a choice; that there is half of it is not. */
function wakeUpFindings({ table, hasWakeUp, hasWakeUpFunction }: ManagedFacts): Told[] {
  if (hasWakeUp || !hasWakeUpFunction) return [];
  const what = `The wake-up trigger of ${displayTable(table)} is gone or disabled: an idle relay hears of an event only when it polls`;
  return [{ severity: "warning", what, fix: "MANAGED_WAKE_UP=true outbox-relay migrate up" }];
}
