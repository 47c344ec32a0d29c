import { LIFE } from "../../../postgres/server-life.ts";
import type { Difference } from "./difference.ts";
import { snapshotLiteral } from "./tail-scope.ts";

/** Whether the server has come as far as the place says, where it is now, and its life. */
export function checkPlaceSql({ from, to }: Difference): string {
  const now = "pg_snapshot_xmax(pg_current_snapshot())";
  return `select pg_snapshot_xmax(${snapshotLiteral(to ?? from)}) <= ${now}, ${now}::text, ${LIFE}`;
}
