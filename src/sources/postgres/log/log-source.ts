import type { PipelineSpec, QueueSource } from "../../../ports/queue-store.ts";
import type { TableName } from "../../../postgres/identifiers.ts";
import { postgresMembership } from "../../../postgres/membership.ts";
import type { Database } from "../../../postgres/pool.ts";
import type { LogKind } from "./log-kind.ts";
import { LogStore } from "./log-store.ts";
import { joinWakeUp } from "./wake-up.ts";

interface LogSourceOptions<Segment> {
  readonly database: Database;
  /** `schema.table`, or `schema.table@subscriber`: each subscriber has its own progress. */
  readonly name: string;
  readonly table: TableName;
  readonly kind: (spec: PipelineSpec) => LogKind<Segment>;
  /** Called when the source is closed. */
  readonly close?: () => Promise<void>;
  /** The table may send wake-up notifications, so that an idle reader need not poll. */
  readonly hasWakeUp?: boolean;
}

/** An append-only log, read by position. */
export function logSource<Segment>({
  close,
  database,
  hasWakeUp = false,
  kind,
  name,
  table,
}: LogSourceOptions<Segment>): QueueSource {
  const kinds: LogKind<Segment>[] = [];
  const joined = hasWakeUp ? joinWakeUp(database, table) : null;
  return {
    name,
    membership: postgresMembership(database),
    pipeline(spec) {
      const own = kind(spec);
      kinds.push(own);
      return new LogStore({ database, table, kind: own, spec, wakeUp: joined?.wakeUp ?? null });
    },
    close: async () => {
      await joined?.leave();
      for (const own of kinds) await own.close?.();
      await close?.();
    },
  };
}
