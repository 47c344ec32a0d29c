import type { PipelineSpec, QueueSource } from "../../../ports/queue-store.ts";
import type { TableName } from "../../../postgres/identifiers.ts";
import { postgresMembership } from "../../../postgres/membership.ts";
import type { Database } from "../../../postgres/pool.ts";
import type { LogKind } from "./log-kind.ts";
import { LogStore } from "./log-store.ts";
import { joinWakeUp } from "./wake-up.ts";

interface LogSourceOptions<Segment> {
  readonly database: Database;
  /** `schema.table`, or `schema.table@subscriber`: each subscriber has progress of its own. */
  readonly name: string;
  readonly table: TableName;
  readonly kind: (spec: PipelineSpec) => LogKind<Segment>;
  /** Called when the last of it is over. */
  readonly close?: () => Promise<void>;
  /** The table may have a doorbell, so that nobody has to look all the time. */
  readonly hasDoorbell?: boolean;
}

/** An append-only log, read by position. */
export function logSource<Segment>({
  close,
  database,
  hasDoorbell = false,
  kind,
  name,
  table,
}: LogSourceOptions<Segment>): QueueSource {
  const kinds: LogKind<Segment>[] = [];
  const bell = hasDoorbell ? joinWakeUp(database, table) : null;
  return {
    name,
    membership: postgresMembership(database),
    pipeline(spec) {
      const own = kind(spec);
      kinds.push(own);
      return new LogStore({ database, table, kind: own, spec, wakeUp: bell?.wakeUp ?? null });
    },
    close: async () => {
      await bell?.leave();
      for (const own of kinds) await own.close?.();
      await close?.();
    },
  };
}
