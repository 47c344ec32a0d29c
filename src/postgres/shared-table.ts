import { filtersOverlap } from "../core/filter-overlap.ts";
import type { TypeFilter } from "../ports/queue-store.ts";
import { displayTable, quoteLiteral, type TableName } from "./identifiers.ts";
import type { RelayTables } from "./relay-tables.ts";
import type { Row } from "./session.ts";

/** One pipeline as served by one living instance. */
export interface Reader {
  readonly pipeline: string;
  readonly instance: string;
  readonly instanceName: string;
  /** Null: an older program, which does not report it. */
  readonly service: string | null;
  /** Undefined: not reported. */
  readonly takes: TypeFilter | undefined;
  /** The destination, for messages; null when not reported. */
  readonly end: string | null;
  readonly ownsLanes: boolean;
  readonly isPaused: boolean;
  /** The service that served the pipeline last; null when unknown. */
  readonly formerService: string | null;
  /** Whether the pipeline's progress is stored in a ledger, which belongs to a service. */
  readonly hasLedger: boolean;
  /** When the pipeline last settled something, in ms; 0 when nothing was delivered yet. */
  readonly settledMs: number;
  readonly joinedMs: number;
  readonly leaseMs: number;
}

/** All instances that currently read a table of events. */
export const readersSql = ({ instances, lanes, pipelines }: RelayTables, { schema, table }: TableName): string => `
select p.name, i.id, i.name, i.service, i.takes -> p.name, i.ends ->> p.name,
  exists (select from ${lanes} l where l.pipeline = p.name and l.owner = i.id), p.paused_at is not null,
  coalesce((select (extract(epoch from max(l.settled_at)) * 1000)::bigint from ${lanes} l where l.pipeline = p.name), 0),
  (extract(epoch from i.joined_at) * 1000)::bigint, p.service,
  exists (select from ${lanes} l where l.pipeline = p.name and l.ledgered_batch > 0), i.lease_ms
from ${pipelines} p join ${instances} i on p.name = any(i.pipelines) and i.alive_until > clock_timestamp()
where p.source_schema = ${quoteLiteral(schema)} and p.source_table = ${quoteLiteral(table)}
order by i.joined_at, i.id, p.name collate "C"`;

/** Parses a row of `readersSql`. */
export function readerOf(row: Row): Reader {
  return {
    pipeline: row[0] ?? "",
    instance: row[1] ?? "",
    instanceName: row[2] ?? "",
    service: row[3] ?? null,
    takes: row[4] == null ? undefined : (JSON.parse(row[4]) as TypeFilter),
    end: row[5] ?? null,
    ownsLanes: row[6] === "t",
    isPaused: row[7] === "t",
    settledMs: Number(row[8]),
    joinedMs: Number(row[9]),
    formerService: row[10] ?? null,
    hasLedger: row[11] === "t",
    leaseMs: Number(row[12]),
  };
}

/**
 * Readers of another deployment that mark the same rows: of the same pipeline under another service name, or of another
 * destination with overlapping types. `isShared` means that they serve our pipeline too, as the same deployment does
 * while its routes change.
 */
export function conflictingReaders(
  me: Reader,
  readers: readonly Reader[],
): readonly (Reader & { readonly isShared: boolean })[] {
  const others = readers.filter(({ instance }) => instance !== me.instance);
  return others
    .filter((other) => isRival(me, other))
    .map((rival) => {
      const isOfService = rival.service === me.service || rival.service === null || me.service === null;
      const serves = others.some((it) => it.instance === rival.instance && it.pipeline === me.pipeline);
      return { ...rival, isShared: rival.pipeline !== me.pipeline && isOfService && serves };
    });
}

function isRival(me: Reader, other: Reader): boolean {
  if (other.pipeline === me.pipeline) {
    return me.service !== null && other.service !== null && other.service !== me.service;
  }
  if (me.takes === undefined || other.takes === undefined) return false;
  return plainPipeline(other.pipeline) !== plainPipeline(me.pipeline) && filtersOverlap(me.takes, other.takes);
}

/** A relay for some types only has its own pipeline name, but the same destination. */
function plainPipeline(name: string): string {
  return name.replace(/\[[^[]*\]$/s, "");
}

/**
 * The rivals that came first: they own lanes, delivered last, or joined earlier. One that handed its lanes over does
 * not count.
 */
export function earlierDeployments(me: Reader, readers: readonly Reader[]): readonly Reader[] {
  const rivals = conflictingReaders(me, readers).filter(({ isShared }) => !isShared);
  const owning = rivals.filter(({ ownsLanes }) => ownsLanes);
  if (owning.length > 0) return owning;
  const isServed = readers.some((it) => it.pipeline === me.pipeline && it.service === me.service && it.ownsLanes);
  if (isServed) return [];
  return rivals.filter((rival) => !rival.isPaused && isEarlier(rival, me));
}

function isEarlier(rival: Reader, me: Reader): boolean {
  if (rival.pipeline === me.pipeline && me.formerService !== null) {
    if (me.formerService === rival.service) return true;
    if (me.formerService === me.service) return false;
  } else if (rival.settledMs !== me.settledMs) return rival.settledMs > me.settledMs;
  if (rival.joinedMs !== me.joinedMs) return rival.joinedMs < me.joinedMs;
  return rival.instance < me.instance;
}

/** Why this service must not continue the pipeline without the operator's decision; null when it can. */
export function ledgerOfAnother({ formerService, hasLedger, pipeline, service }: Reader): string | null {
  if (!hasLedger || formerService === null || service === null || formerService === service) return null;
  const what = `The progress of ${pipeline} is in the ledger of the service ${formerService}, but this is ${service}`;
  return `${what}. If this service replaces it, run: outbox-relay adopt '${pipeline}'`;
}

/** Readers of the same pipeline and service whose settings name another destination. */
export function otherDestinations(me: Reader, readers: readonly Reader[]): readonly Reader[] {
  return readers.filter(
    ({ end, instance, pipeline, service }) =>
      instance !== me.instance && pipeline === me.pipeline && service === me.service && end !== null && end !== me.end,
  );
}

/** For messages: who reads the table, and for which destination. */
export function sharedTableText(table: TableName, me: Reader, others: readonly Reader[]): string {
  const names = [...new Set(others.map(describe))];
  const listed = names.slice(0, 3).join("; ") + (names.length > 3 ? `; and ${names.length - 3} more` : "");
  return `${displayTable(table)} is read by another deployment too: ${listed}. This is ${describe(me)}`;
}

function describe({ end, instanceName, pipeline, service }: Reader): string {
  const of = service === null ? "" : ` of the service ${service}`;
  return `${pipeline}${end === null ? "" : ` (${end})`} on ${instanceName}${of}`;
}
