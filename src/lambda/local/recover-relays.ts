import type { IntentHandler } from "../intent-handler.ts";
import type { ChangeStream } from "./change-stream.ts";
import type { Checkpoints } from "./checkpoints.ts";
import { type Searched, type SearchOptions, searchTable } from "./search-table.ts";
import { isVoid, lostPlace, SWEEP } from "./shard-plan.ts";

interface RecoverOptions extends Omit<SearchOptions, "streamArn"> {
  readonly stream: ChangeStream;
  readonly checkpoints: Checkpoints;
  readonly handlers: readonly IntentHandler[];
  /** Also those that are not halted. */
  readonly isAll: boolean;
}

interface Recovered extends Searched {
  /** The types that were searched for. */
  readonly relays: readonly string[];
}

/**
 * For relays whose place in the stream is lost: searches the table for what was never tried, and then lets them go on
 * with the oldest that the stream still holds. In this order, so that a recovery that ends too early is no recovery.
 */
export async function recoverRelays(options: RecoverOptions): Promise<Recovered> {
  const { checkpoints, handlers, isAll, signal, stream, table } = options;
  const nameOf = ({ type }: IntentHandler) => `${table}/${type}`;
  const rows = new Map<IntentHandler, Awaited<ReturnType<Checkpoints["ofRelay"]>>>();
  for (const handler of handlers) rows.set(handler, await checkpoints.ofRelay(nameOf(handler)));
  const shards = await stream.shards();
  const isHalted = (handler: IntentHandler) => lostPlace(stream.arn, shards, rows.get(handler) ?? []) !== null;
  const chosen = handlers.filter((handler) => isAll || isHalted(handler));
  const relays = chosen.map(({ type }) => type);
  if (chosen.length === 0) return { relays, looked: 0, found: 0, failed: 0 };
  const searched = await searchTable(chosen, { ...options, streamArn: stream.arn });
  if (searched.failed > 0 || signal.aborted) return { ...searched, relays };
  for (const row of chosen.filter(isHalted).flatMap((handler) => rows.get(handler) ?? [])) {
    const isGone = row.shard === SWEEP ? row.stream !== stream.arn : isVoid(stream.arn, shards, row);
    if (isGone) await checkpoints.remove(row);
    else if (row.lost !== null) await checkpoints.reset(row);
  }
  return { ...searched, relays };
}
