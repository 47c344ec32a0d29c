import { type Database, openDatabase } from "../postgres/pool.ts";

/** For a command that asks or writes something and ends. */
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
