import { RelayError } from "../core/errors.ts";
import { ADOPTED } from "../ports/queue-store.ts";
import { systemId } from "./identity.ts";
import { writeSettings } from "./lanes.ts";
import type { Database } from "./pool.ts";
import type { Session } from "./session.ts";
import { transaction } from "./transaction.ts";

/** What to adopt; everything by default. */
interface Adoption {
  /** Only this pipeline. */
  readonly pipeline?: string;
  /** Only this lane of it. */
  readonly lane?: number;
  /** The database is a copy that runs beside its original: it gets its own name and ledger. */
  readonly asCopy?: boolean;
}

/**
 * The operator's decision to continue although ledger and database contradict each other, or the database was restored
 * on another server. Events with unknown delivery are delivered again. Returns the number of lanes.
 */
export async function adopt(database: Database, { pipeline, lane, asCopy = false }: Adoption): Promise<number> {
  const { identity, lanes } = database.tables;
  return await transaction(database.pool, writeSettings(database, "adopting"), async (session) => {
    await adoptServer(session, identity, asCopy);
    const conditions = [
      ...(pipeline === undefined ? [] : ["pipeline = $2"]),
      ...(lane === undefined ? [] : [`lane = $${pipeline === undefined ? 2 : 3}`]),
    ];
    const values = [...(pipeline === undefined ? [] : [pipeline]), ...(lane === undefined ? [] : [lane])];
    const rows = await session.rows(
      `update ${lanes} set ledgered_batch = $1 ${conditions.length > 0 ? `where ${conditions.join(" and ")}` : ""}
       returning 1`,
      [String(asCopy ? 0n : ADOPTED), ...values],
    );
    if (rows.length === 0 && conditions.length > 0) {
      const known = await session.rows(`select distinct pipeline from ${lanes} order by 1`);
      const names = known.map((row) => row[0]).join(", ") || "none yet";
      const wanted = `${pipeline ?? "any pipeline"}${lane === undefined ? "" : `, lane ${lane}`}`;
      throw new RelayError("CONFIG_INVALID", `There is no ${wanted} to adopt. Pipelines here: ${names}.`);
    }
    // The next service may continue them, under whatever name.
    const { pipelines } = database.tables;
    await session.rows(`update ${pipelines} set service = null where $1::text is null or name = $1`, [
      pipeline ?? null,
    ]);
    return rows.length;
  });
}

async function adoptServer(session: Session, identity: string, asCopy: boolean): Promise<void> {
  const runsOn = await systemId(session);
  const name = asCopy ? ", uuid = gen_random_uuid()" : "";
  await session.rows(`update ${identity} set system_id = $1${name}`, [runsOn]);
}
