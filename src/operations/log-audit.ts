import type { Database } from "../postgres/pool.ts";
import type { Session } from "../postgres/session.ts";
import { noteAction } from "./audit.ts";
import type { Author } from "./author.ts";

/** Keeps who moved a reader of a log, and why: in the audit, and among the technical events, with the change itself. */
export async function noteLogChange(
  session: Session,
  database: Database,
  name: "LogSought" | "LogReset",
  pipeline: string,
  author: Author,
  detail: object,
): Promise<void> {
  const { by, reason } = author;
  await session.rows(
    `insert into ${database.tables.technicalEvents} (at, name, pipeline, detail)
     values (clock_timestamp(), $1, $2, $3::jsonb)`,
    [name, pipeline, JSON.stringify({ ...detail, by, reason: reason ?? null })],
  );
  const action = name === "LogSought" ? "log-seek" : "log-reset";
  await noteAction(session, database, author, { action, target: pipeline, detail });
}
