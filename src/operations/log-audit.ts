import type { Database } from "../postgres/pool.ts";
import type { Session } from "../postgres/session.ts";
import type { Author } from "./author.ts";

/** Keeps who moved a reader of a log, and why, among the technical events: in the same transaction as the change. */
export async function noteLogChange(
  session: Session,
  { tables }: Database,
  name: "LogSought" | "LogReset",
  pipeline: string,
  { by, reason }: Author,
  detail: object,
): Promise<void> {
  await session.rows(
    `insert into ${tables.technicalEvents} (at, name, pipeline, detail) values (clock_timestamp(), $1, $2, $3::jsonb)`,
    [name, pipeline, JSON.stringify({ ...detail, by, reason: reason ?? null })],
  );
}
