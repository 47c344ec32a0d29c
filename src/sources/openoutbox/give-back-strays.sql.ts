import { quoteArray } from "../../postgres/identifiers.ts";
import { GIVE_BACK } from "./claim-order.ts";
import { mineCondition, oursCondition, type QueueScope } from "./openoutbox-table.ts";

/** No claim takes as long as this until its owner knows of it, however short its lease is. */
const STRAY_MS_MIN = 60_000;

/** Claims that stand under our name, that we know nothing of, and that are too old to be on their way to us. */
export const giveBackStraysSql = (
  scope: QueueScope,
  owner: string,
  ids: readonly string[],
  leaseMs: number,
): string => `
update ${scope.table.quotedName} t set status = 'PENDING', ${GIVE_BACK}
where t.status = 'DELIVERING' and ${oursCondition(owner)} and ${mineCondition(scope)}
  and t.locked_at < now() - ${Math.ceil(Math.max(leaseMs, STRAY_MS_MIN))} * interval '1 millisecond'
  and t.event_id not in (select unnest(${quoteArray(ids)}::uuid[]))`;
