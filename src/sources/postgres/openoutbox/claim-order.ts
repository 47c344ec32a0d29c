import { quoteLiteral } from "../../../postgres/identifiers.ts";
import type { QueueScope } from "./openoutbox-table.ts";

/*
 * An update moves a row behind the rows that it ties with: events of one transaction have equal times, and only their
 * position in the table shows their order. So each claim gets a number that rises with every claimed row. A released
 * row gets an `available_at` in the distant past, in the order of these numbers. Released rows then come before all
 * rows that were never claimed, and keep their order however often that happens.
 *
 * The number is stored in `locked_by`, which nothing changes during a claim. `locked_at` would not work: claims renew
 * it at different times.
 */

/** In hours, because years depend on the session's time zone. A thousand years ago is before any time in use. */
const LONG_PAST = "interval '8766000 hours'";
const HALF_AS_LONG = "interval '4383000 hours'";
/** Microseconds since 1970 have this many digits from 2001 to 2286. */
const NUMBER = "[0-9]{16}";
const NUMBERED = `'(^|/)${NUMBER}/[0-9a-f-]{36}$'`;

/** The lowest number of a new claim: the database's time in microseconds. */
export const CLAIM_NUMBER_NOW = "(extract(epoch from now()) * 1000000)::bigint";

/** The number of the claim from which a row was released; null for other rows. */
export const FORMER_CLAIM_NUMBER = `case when isfinite(t.available_at) and t.available_at < now() - ${HALF_AS_LONG}
    then (extract(epoch from t.available_at + ${LONG_PAST}) * 1000000)::bigint end`;

/** The value of `locked_by` while this instance holds a claim with this number. */
export function lockedBySql({ lockPrefix }: QueueScope, owner: string, number: string): string {
  return `${quoteLiteral(lockPrefix)} || ${number} || ${quoteLiteral(`/${owner}`)}`;
}

/** `locked_by` for people: without the number. */
export const LOCK_NAME = `regexp_replace(t.locked_by, '${NUMBER}/(?=[0-9a-f-]{36}$)', '')`;

/**
 * Assignments that end a claim without an outcome. Other relays do not number their claims; their order is that of
 * `locked_at`.
 */
export const GIVE_BACK = `locked_by = null, locked_at = null, updated_at = now(),
  available_at = least(t.available_at, case when t.locked_by ~ ${NUMBERED}
    then timestamptz 'epoch' + left(right(t.locked_by, 53), 16)::bigint * interval '1 microsecond'
    else t.locked_at end - ${LONG_PAST})`;
