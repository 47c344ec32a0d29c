import { quoteLiteral } from "../../postgres/identifiers.ts";
import type { QueueScope } from "./openoutbox-table.ts";

/*
 * Every update moves a row behind those that it ties with: events of one transaction have equal times, and only the
 * place in the table tells their order. So each claim gets a number, which rises with the claims and within each of
 * them, and a row that is given back gets an `available_at` long past, in the order of these numbers: it comes before
 * all rows that were never claimed, and the rows that were given back keep their order, however often that happens.
 *
 * The number stands in `locked_by`, which nothing changes while the claim lasts. `locked_at` would not do: it is
 * renewed, for some claims sooner than for others.
 */

/** Hours and no years, since those depend on the session's time zone. A thousand years: before any time in use. */
const LONG_PAST = "interval '8766000 hours'";
const HALF_AS_LONG = "interval '4383000 hours'";
/** Microseconds since 1970 have as many digits from 2001 to 2286. */
const NUMBER = "[0-9]{16}";
const NUMBERED = `'(^|/)${NUMBER}/[0-9a-f-]{36}$'`;

/** The number of a claim at the least: the database's time in microseconds. */
export const CLAIM_NUMBER_NOW = "(extract(epoch from now()) * 1000000)::bigint";

/** The number of the claim from which a row was given back; null for others. */
export const FORMER_CLAIM_NUMBER = `case when isfinite(t.available_at) and t.available_at < now() - ${HALF_AS_LONG}
    then (extract(epoch from t.available_at + ${LONG_PAST}) * 1000000)::bigint end`;

/** What `locked_by` says while this instance has the row under a claim with this number. */
export function lockedBySql({ lockPrefix }: QueueScope, owner: string, number: string): string {
  return `${quoteLiteral(lockPrefix)} || ${number} || ${quoteLiteral(`/${owner}`)}`;
}

/** `locked_by` for people: without the number. */
export const LOCK_NAME = `regexp_replace(t.locked_by, '${NUMBER}/(?=[0-9a-f-]{36}$)', '')`;

/** Assignments that end a claim without an outcome. A relay that is not ours gave its claim no number. */
export const GIVE_BACK = `locked_by = null, locked_at = null, updated_at = now(),
  available_at = least(t.available_at, case when t.locked_by ~ ${NUMBERED}
    then timestamptz 'epoch' + left(right(t.locked_by, 53), 16)::bigint * interval '1 microsecond'
    else t.locked_at end - ${LONG_PAST})`;
