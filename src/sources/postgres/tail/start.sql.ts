import { quoteLiteral } from "../../../postgres/identifiers.ts";
import { LIFE } from "../../../postgres/server-life.ts";
import { type TailScope, tableSql } from "./tail-scope.ts";

/** Now as a snapshot, the first position that was written at a time or later (null without one), the server's life. */
export function startSql(scope: TailScope, since: string | null): string {
  const { events, position } = scope.shape;
  const first = `(select min(${position} + 0) from ${tableSql(scope)}
  where ${events.createdAt} >= ${quoteLiteral(since ?? "")}::timestamptz)`;
  return `select pg_current_snapshot()::text, ${since === null ? "null" : first}, ${LIFE}`;
}
