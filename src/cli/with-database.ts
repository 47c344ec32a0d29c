import { type Database, openDatabase } from "../postgres/pool.ts";

/** Opens a database for one command, and closes it afterwards. */
export async function withDatabase(
  target: Parameters<typeof openDatabase>[0],
  work: (database: Database) => Promise<number>,
): Promise<number> {
  const database = openDatabase(target);
  try {
    return await work(database);
  } finally {
    await database.close();
  }
}
