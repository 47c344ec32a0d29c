import type { TableName } from "../../src/postgres/identifiers.ts";

export const MANAGED: TableName = { schema: "shop", table: "outbox" };
export const WAL: TableName = { schema: "shop", table: "outbox_log" };
export const WAL_PUBLICATION = "chaos";
export const WAL_SLOT = "chaos";
