import { RelayError } from "../../core/errors.ts";
import { quoteArray, quoteLiteral } from "../../postgres/identifiers.ts";
import type { Database } from "../../postgres/pool.ts";
import { statement } from "../../postgres/transaction.ts";
import { operationReadSettings } from "../events/event-source.ts";

/** A selection of dead letters by error group. */
interface ByGroup {
  /** One group, or several separated by commas. */
  readonly group?: string | undefined;
  readonly resolved?: boolean | undefined;
}

interface KnownGroup {
  readonly group: string;
  readonly count: number;
  readonly example: string;
}

const WHOLE = /^[0-9a-f]{12}$/;
const BEGINNING = /^[0-9a-f]{1,12}$/;
const LISTED_MAX = 8;
/** As many as a list of groups returns. */
const NAMED_MAX = 200;
const EXAMPLE_CHARACTERS_MAX = 120;

/**
 * Expands the group prefixes in a choice to full ids. Throws NOTHING_MATCHES, with a list of the groups, where no group
 * or several groups have a prefix. A full id is not checked: its group may have become empty, and then the list is
 * empty.
 */
export async function withWholeGroup<Choice extends ByGroup>(database: Database, choice: Choice): Promise<Choice> {
  const { group, resolved = false } = choice;
  if (group === undefined) return choice;
  const named = group.split(",");
  if (named.length > NAMED_MAX) {
    throw new RelayError("CONFIG_INVALID", `${named.length} error groups are given; the maximum is ${NAMED_MAX}`);
  }
  const whole: string[] = [];
  for (const one of named) whole.push(await wholeGroup(database, one.trim(), resolved));
  return { ...choice, group: whole.join() };
}

/** The SQL condition that a fingerprint is one of these. */
export function inGroup(column: string, group: string): string {
  return `${column} = any(${quoteArray(group.split(","))}::text[])`;
}

async function wholeGroup(database: Database, named: string, resolved: boolean): Promise<string> {
  const beginning = named.toLowerCase();
  if (WHOLE.test(beginning)) return beginning;
  const found = BEGINNING.test(beginning) ? await groupsLike(database, beginning, resolved) : [];
  const [only, ...others] = found;
  if (only !== undefined && others.length === 0) return only.group;
  throw only === undefined ? await noGroup(database, named) : ambiguous(named, found);
}

/** Throws NOTHING_MATCHES, with a list of the groups, for a selection that matches nothing. */
export async function requireFound(
  database: Database,
  count: number,
  { group, ids }: ByGroup & { readonly ids?: readonly string[] | undefined },
): Promise<void> {
  if (count > 0) return;
  if (group !== undefined) throw await noGroup(database, group);
  const meant =
    ids === undefined ? "letters match the filter" : `letter with id ${ids.slice(0, LISTED_MAX).join(", ")}`;
  throw new RelayError("NOTHING_MATCHES", `No open dead ${meant}. ${await listText(database)}`);
}

async function groupsLike(database: Database, beginning: string, resolved: boolean): Promise<readonly KnownGroup[]> {
  const waiting = resolved ? "" : "d.resolved_at is null and";
  const rows = await statement(
    database.pool,
    operationReadSettings(database, "looking for an error group"),
    `select g.fingerprint, g.count, left((select failure_reason from ${database.tables.failedEvents} d
       where ${waiting} d.fingerprint = g.fingerprint order by d.last_failed_at desc limit 1), ${EXAMPLE_CHARACTERS_MAX})
     from (select d.fingerprint, count(*) as count from ${database.tables.failedEvents} d
       where ${waiting} d.fingerprint like ${quoteLiteral(`${beginning}%`)}
       group by 1 order by 2 desc, 1 limit ${LISTED_MAX + 1}) g`,
  );
  return rows.map((row) => ({ group: row[0] ?? "", count: Number(row[1]), example: row[2] ?? "" }));
}

async function noGroup(database: Database, wanted: string): Promise<RelayError> {
  const what = `No error group of open dead letters begins with ${JSON.stringify(wanted.slice(0, 100))}`;
  return new RelayError("NOTHING_MATCHES", `${what}. ${await listText(database)}`);
}

function ambiguous(wanted: string, groups: readonly KnownGroup[]): RelayError {
  const what = `Several error groups begin with ${JSON.stringify(wanted)}: give a longer prefix`;
  return new RelayError("NOTHING_MATCHES", `${what}: ${groupsText(groups)}`);
}

async function listText(database: Database): Promise<string> {
  const groups = await groupsLike(database, "", false);
  return groups.length === 0 ? "There are no open dead letters" : `Groups: ${groupsText(groups)}`;
}

function groupsText(groups: readonly KnownGroup[]): string {
  const shown = groups.slice(0, LISTED_MAX).map(({ count, example, group }) => `${group} (${count}): ${example}`);
  return [...shown, ...(groups.length > LISTED_MAX ? ["and more"] : [])].join("; ");
}
