import { transaction } from "../../postgres/transaction.ts";
import { readPatch } from "../dead-letters/merge-patch.ts";
import { isId } from "../events/event-filter.ts";
import { type ShownPayload, shownPayload } from "../events/event-payload.ts";
import { type OperationTarget, operationReadSettings } from "../events/event-source.ts";
import type { FrozenPlan } from "./frozen-plan.ts";
import { type PatchedItem, patchItems } from "./patch-items.ts";
import { planSources } from "./plan-sources.ts";

/** A plan's patch applied to one of its events. */
interface PatchExample {
  readonly id: string;
  readonly type: string;
  readonly source: string;
  readonly pipeline: string;
  readonly before: ShownPayload;
  /** Null when it cannot be patched; `problem` says why, and the event would be skipped. */
  readonly after: ShownPayload | null;
  readonly problem: string | null;
}

const EXAMPLES = 5;
/** Examples are chosen from this many events, one of each pipeline and type first, since these differ. */
const LOOKED_AT = 1_000;

/** Read-only. Empty for a plan without a patch or without waiting events. */
export async function previewPatch(target: OperationTarget, plan: FrozenPlan): Promise<readonly PatchExample[]> {
  if (plan.patch === null) return [];
  const { database } = target;
  const patch = readPatch(plan.patch);
  const sources = await planSources(target);
  const settings = operationReadSettings(database, "previewing a patch");
  return await transaction(database.pool, settings, async (session) => {
    const rows = await session.rows(
      `with w as (select seq, pipeline, source, event_id, event_type from ${database.tables.replayItems}
         where plan = $1 and state = 'waiting' order by seq limit ${LOOKED_AT}),
       ranked as (select w.*, row_number() over (partition by pipeline, event_type order by seq) as rank from w)
       select pipeline, source, event_id, event_type from ranked order by rank, seq limit ${EXAMPLES}`,
      [plan.id],
    );
    const examples: PatchExample[] = [];
    for (const [pipeline = "", name = "", id = "", type = ""] of rows.map((row) => row.map((it) => it ?? ""))) {
      const source = sources.waiting(name, pipeline);
      if (source === null || !isId(source.table.idType, id)) continue;
      const [item] = await patchItems(session, source, [id], patch);
      if (item !== undefined) examples.push({ type, source: name, pipeline, ...shown(target, item) });
    }
    return examples;
  });
}

function shown({ shown: rules }: OperationTarget, { after, before, id, problem }: PatchedItem) {
  const seen = (bytes: Buffer) => {
    const payload = shownPayload(bytes, bytes.length);
    return rules === undefined ? payload : rules.payload(payload);
  };
  return { id, before: seen(before), after: after === null ? null : seen(after), problem };
}
