import type { IntentHandler } from "../lambda/intent-handler.ts";
import type { ChangeStream } from "./change-stream.ts";
import type { Checkpoints } from "./checkpoints.ts";
import { type Searched, type SearchOptions, searchTable } from "./search-table.ts";
import { isObsolete, lostPosition, SWEEP } from "./shard-plan.ts";

interface RecoverOptions extends Omit<SearchOptions, "streamArn"> {
  readonly stream: ChangeStream;
  readonly checkpoints: Checkpoints;
  readonly handlers: readonly IntentHandler[];
  /** Also recovers relays that are not halted. */
  readonly isAll: boolean;
}

interface Recovered extends Searched {
  /** The intent types that were recovered. */
  readonly relays: readonly string[];
}

/**
 * Recovers relays that lost their position in the stream: searches the table for intents that were never attempted,
 * then lets the relays continue with the oldest record of the stream. The order matters: after a recovery that ends
 * early, the relays are still halted.
 */
export async function recoverRelays(options: RecoverOptions): Promise<Recovered> {
  const { checkpoints, handlers, isAll, signal, stream, table } = options;
  const nameOf = ({ type }: IntentHandler) => `${table}/${type}`;
  const rows = new Map<IntentHandler, Awaited<ReturnType<Checkpoints["ofRelay"]>>>();
  for (const handler of handlers) rows.set(handler, await checkpoints.ofRelay(nameOf(handler)));
  const shards = await stream.shards();
  const isHalted = (handler: IntentHandler) => lostPosition(stream.arn, shards, rows.get(handler) ?? []) !== null;
  const chosen = handlers.filter((handler) => isAll || isHalted(handler));
  const relays = chosen.map(({ type }) => type);
  if (chosen.length === 0) return { relays, looked: 0, found: 0, failed: 0 };
  const searched = await searchTable(chosen, { ...options, streamArn: stream.arn });
  if (searched.failed > 0 || signal.aborted) return { ...searched, relays };
  for (const row of chosen.filter(isHalted).flatMap((handler) => rows.get(handler) ?? [])) {
    const isGone = row.shard === SWEEP ? row.stream !== stream.arn : isObsolete(stream.arn, shards, row);
    if (isGone) await checkpoints.remove(row);
    else if (row.lost !== null) await checkpoints.reset(row);
  }
  return { ...searched, relays };
}
