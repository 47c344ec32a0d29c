import type { Database } from "../../../postgres/pool.ts";
import { parseLsn } from "./lsn.ts";
import { withLink } from "./replication.ts";
import { between, writePosition } from "./wal-position.ts";

/** The end of the log as a checkpoint: everything committed from now on lies after it. */
export async function currentWalPosition(database: Database): Promise<string> {
  return await withLink(database, "asking for the end of the log", async (link) => {
    const [row] = await link.rows("IDENTIFY_SYSTEM");
    return writePosition(row?.[0] ?? "", between(parseLsn(row?.[2] ?? ""), Number(row?.[1])), []);
  });
}
