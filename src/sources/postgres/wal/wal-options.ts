import type { PipelineSpec } from "../../../ports/queue-store.ts";
import type { ColumnNames } from "../../../postgres/column-names.ts";
import type { Database } from "../../../postgres/pool.ts";
import type { TableReference } from "../table-discovery.ts";
import type { WalPreset } from "./event-parts.ts";

export interface WalOptions {
  readonly database: Database;
  /** Whose inserts are events; null where only messages are. */
  readonly table: TableReference | null;
  /** Messages of `pg_logical_emit_message` under this prefix are events too. */
  readonly messages: { readonly prefix: string } | null;
  readonly columns: ColumnNames;
  readonly preset: WalPreset;
  /** More columns that travel as headers: `column` or `column:header`. */
  readonly headerColumns?: readonly string[];
  readonly spec: PipelineSpec;
  /** Where the first reading begins. The log has no rows from before its slot: a table that has some needs `now`. */
  readonly start: "beginning" | "now" | Date;
  /** Of one's own by default. One that is there already is read on from where its former reader came. */
  readonly slot?: string;
  readonly publication?: string;
  /** How long a settled place is kept back from the server; see `WalStream`. */
  readonly confirmAfterMs?: number;
}

export const CONFIRM_AFTER_MS = 5_000;
