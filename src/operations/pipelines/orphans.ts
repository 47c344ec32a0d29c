import { isRelayError } from "../../core/errors.ts";
import { statement } from "../../postgres/transaction.ts";
import { type OperationTarget, operationReadSettings } from "../events/event-source.ts";
import { COUNTED_MAX } from "../logs/log-place.ts";
import { planSeek } from "../logs/log-seek.ts";
import { type KnownPipeline, knownPipelines } from "./pipelines.ts";

/** The configured sources and pipelines. */
export interface Configured {
  /** `schema.table`, without subscribers. */
  readonly sources: ReadonlySet<string>;
  readonly pipelines: ReadonlySet<string>;
}

/** A finding on a pipeline that is no longer configured. */
interface OrphanRemark {
  readonly severity: "warning";
  readonly what: string;
  readonly fix: string;
}

/** Findings on pipelines of these sources that are not configured and that no live instance serves. */
export async function orphanRemarks(target: OperationTarget, configured: Configured): Promise<readonly OrphanRemark[]> {
  const { database } = target;
  const { instances } = database.tables;
  const known = await knownPipelines(database);
  const rows = await statement(
    database.pool,
    operationReadSettings(database, "looking for pipelines that are not served"),
    `select distinct unnest(pipelines) from ${instances} where alive_until > clock_timestamp()`,
  );
  const served = new Set(rows.map(([name]) => name));
  const remarks: OrphanRemark[] = [];
  for (const it of known) {
    const isOurs = configured.sources.has(it.source) && !configured.pipelines.has(it.pipeline);
    if (isOurs && !served.has(it.pipeline)) remarks.push(await remarkOn(target, it, configured));
  }
  return remarks;
}

async function remarkOn(target: OperationTarget, it: KnownPipeline, configured: Configured): Promise<OrphanRemark> {
  const { log, pipeline, source, subscriber } = it;
  const what = `The pipeline ${pipeline} is not configured any more, and no instance serves it`;
  const kept = log === null ? "" : "; it blocks the retention of its log";
  const fix = `If it is no longer needed:\noutbox-relay pipeline forget '${pipeline}'`;
  const successors = [...configured.pipelines].filter((name) => name.startsWith(`${source}@`));
  if (log === null || subscriber !== null || successors.length === 0) {
    return { severity: "warning", what: `${what}${kept}`, fix };
  }
  const again = await deliveredBy(target, it);
  const begin = `${successors.join(", ")} start where their start or LOG_START says: from the beginning, they deliver ${again} again`;
  const seek = `To deliver no event twice, set start: now before their first run, or afterwards:\noutbox-relay log seek PIPELINE --to now --yes`;
  return { severity: "warning", what: `${what}${kept}. ${begin}`, fix: `${seek}\n${fix}` };
}

/** How many events the old reader has passed that still exist. */
async function deliveredBy(target: OperationTarget, it: KnownPipeline): Promise<string> {
  if (it.log === "wal") return "nothing from before their own slots";
  try {
    const { again } = await planSeek(target, it, "beginning");
    if (again === null) return "the whole log";
    return again > COUNTED_MAX ? `more than ${COUNTED_MAX} delivered events` : `${again} delivered events`;
  } catch (error) {
    if (!isRelayError(error) || error.code === "DATABASE_UNREACHABLE") throw error;
    return "the whole log";
  }
}
