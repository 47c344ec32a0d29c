import { loadDatabaseConfig } from "../config/load-config.ts";
import { anchorLogs } from "../operations/log-adopt.ts";
import { adopt } from "../postgres/adopt.ts";
import { requireSchema } from "../postgres/migrations/migrate.ts";
import { configSources } from "./config-sources.ts";
import { EXIT, Exit } from "./exit.ts";
import { withDatabase } from "./with-database.ts";

interface AdoptOptions {
  readonly lane?: string;
  readonly asCopy?: boolean;
}

/** `outbox-relay adopt`: a person's word that exactly-once delivery goes on with what is there. */
export async function adoptCommand(pipeline: string | undefined, options: AdoptOptions): Promise<number> {
  const { database: target } = await loadDatabaseConfig(configSources());
  const lane = laneOf(options.lane);
  return await withDatabase(target, async (database) => {
    await requireSchema(database);
    if (pipeline === undefined && lane === undefined) {
      for (const { parked, source } of await anchorLogs(database)) {
        const waiting = [...parked].map(([name, count]) => `${count} unread events of ${name}`).join(", ");
        process.stdout.write(`${source}: begins at the present, with ${waiting || "nothing"} beside it\n`);
      }
    }
    const lanes = await adopt(database, {
      ...(pipeline === undefined ? {} : { pipeline }),
      ...(lane === undefined ? {} : { lane }),
      ...(options.asCopy === undefined ? {} : { asCopy: options.asCopy }),
    });
    const where = pipeline === undefined ? "all pipelines" : pipeline;
    const how = options.asCopy ? "under a name of this database's own" : "with what the ledger has";
    process.stdout.write(`${lanes} lanes of ${where} go on ${how}; running relays notice within seconds\n`);
    return EXIT.ok;
  });
}

function laneOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,4}$/.test(text)) return Number(text);
  throw new Exit(EXIT.usage, [`--lane is ${JSON.stringify(text)}: write the number of a lane, from 0 on`]);
}
