import { quoteArray } from "../../../postgres/identifiers.ts";
import { GIVE_BACK } from "./claim-order.ts";
import { mineCondition, oursCondition, type QueueScope } from "./openoutbox-table.ts";

/** The response to a claim never takes this long to reach its owner, however short the lease is. */
const FORGOTTEN_MS_MIN = 60_000;

/**
 * Releases claims under our name that this instance does not know and that are too old for their response to be on its
 * way.
 */
export const releaseForgottenSql = (
  scope: QueueScope,
  owner: string,
  ids: readonly string[],
  leaseMs: number,
): string => `
update ${scope.shape.quotedName} t set status = 'PENDING', ${GIVE_BACK}
where t.status = 'DELIVERING' and ${oursCondition(owner)} and ${mineCondition(scope)}
  and t.locked_at < now() - ${Math.ceil(Math.max(leaseMs, FORGOTTEN_MS_MIN))} * interval '1 millisecond'
  and t.event_id not in (select unnest(${quoteArray(ids)}::uuid[]))`;
