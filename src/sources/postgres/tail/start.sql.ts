import { quoteLiteral } from "../../../postgres/identifiers.ts";
import { SERVER_INCARNATION } from "../../../postgres/server-incarnation.ts";
import { type TailScope, tableSql } from "./tail-scope.ts";

/**
 * The current snapshot, the first position written at a time or later (null without one), and the server's incarnation.
 */
export function startSql(scope: TailScope, since: string | null): string {
  const { events, position } = scope.shape;
  const first = `(select min(${position} + 0) from ${tableSql(scope)}
  where ${events.createdAt} >= ${quoteLiteral(since ?? "")}::timestamptz)`;
  return `select pg_current_snapshot()::text, ${since === null ? "null" : first}, ${SERVER_INCARNATION}`;
}
