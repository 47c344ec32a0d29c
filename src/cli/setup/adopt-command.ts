import { loadDatabaseConfig } from "../../config/load-config.ts";
import { anchorLogs } from "../../operations/logs/log-adopt.ts";
import { adopt } from "../../postgres/adopt.ts";
import { requireSchema } from "../../postgres/migrations/migrate.ts";
import { EXIT, Exit } from "../../service/exit.ts";
import { configSources } from "../config-sources.ts";
import { withDatabase } from "../operation-target.ts";
import { type Form, printJson } from "../terminal/output.ts";

interface AdoptOptions {
  readonly lane?: string;
  readonly asCopy?: boolean;
  readonly output: Form;
}

/** `outbox-relay adopt`: the operator's decision to continue exactly-once delivery with the present state. */
export async function adoptCommand(pipeline: string | undefined, options: AdoptOptions): Promise<number> {
  const { database: target } = await loadDatabaseConfig(configSources());
  const lane = laneOf(options.lane);
  return await withDatabase(target, async (database) => {
    await requireSchema(database);
    const logs = pipeline === undefined && lane === undefined ? await anchorLogs(database) : [];
    const lanes = await adopt(database, {
      ...(pipeline === undefined ? {} : { pipeline }),
      ...(lane === undefined ? {} : { lane }),
      ...(options.asCopy === undefined ? {} : { asCopy: options.asCopy }),
    });
    if (options.output === "json") {
      const parkedOf = logs.map(({ parked, source }) => ({ source, parked: Object.fromEntries(parked) }));
      printJson({ pipeline: pipeline ?? null, lanes, logs: parkedOf });
      return EXIT.ok;
    }
    for (const { parked, source } of logs) {
      const waiting = [...parked].map(([name, count]) => `${count} unread events of ${name}`).join(", ");
      process.stdout.write(`${source}: starts at its end, with ${waiting || "no unread events"} parked\n`);
    }
    const where = pipeline === undefined ? "all pipelines" : pipeline;
    const how = options.asCopy ? "under a new database identity" : "from the ledger's position";
    process.stdout.write(`${lanes} lanes of ${where} continue ${how}; running relays notice within seconds\n`);
    return EXIT.ok;
  });
}

function laneOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,4}$/.test(text)) return Number(text);
  throw new Exit(EXIT.usage, [`--lane is ${JSON.stringify(text)}: write a lane number from 0`]);
}
