import type { Database } from "../../../postgres/pool.ts";
import { parseLsn } from "./lsn.ts";
import { withLink } from "./replication.ts";
import { between, writePlace } from "./wal-place.ts";

/** The end of the log as it is written down: what is committed from now on lies behind it. */
export async function presentWalPlace(database: Database): Promise<string> {
  return await withLink(database, "asking for the end of the log", async (link) => {
    const [row] = await link.rows("IDENTIFY_SYSTEM");
    return writePlace(row?.[0] ?? "", between(parseLsn(row?.[2] ?? ""), Number(row?.[1])), []);
  });
}
