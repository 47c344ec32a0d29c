import type { PipelineSpec } from "../../../ports/queue-store.ts";
import type { ColumnNames } from "../../../postgres/column-names.ts";
import type { Database } from "../../../postgres/pool.ts";
import type { TableReference } from "../table-discovery.ts";
import type { WalPreset } from "./event-parts.ts";

/** Options of `walKind`. */
export interface WalOptions {
  readonly database: Database;
  /** The table whose inserts are events; null for messages only. */
  readonly table: TableReference | null;
  /** Messages of `pg_logical_emit_message` with this prefix are events too. */
  readonly messages: { readonly prefix: string } | null;
  readonly columns: ColumnNames;
  readonly preset: WalPreset;
  /** More columns to send as headers: `column` or `column:header`. */
  readonly headerColumns?: readonly string[];
  readonly spec: PipelineSpec;
  /** Where the first reading begins. The log has no rows from before its slot, so a table that has rows needs `now`. */
  readonly start: "beginning" | "now" | Date;
  /** A slot of its own by default. An existing slot is read on from where its former reader stopped. */
  readonly slot?: string;
  readonly publication?: string;
  /** How long a settled position is withheld from the server; see `WalStream`. */
  readonly confirmAfterMs?: number;
}

/** Long enough for a standby to receive the checkpoint before the slot moves. */
export const CONFIRM_AFTER_MS = 5_000;
