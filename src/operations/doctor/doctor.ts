import { isRelayError, reasonOf } from "../../core/errors.ts";
import { displayTable } from "../../postgres/identifiers.ts";
import { checkDestination } from "./destination-check.ts";
import { namedSources, sampledQueues, sampleEvents } from "./event-samples.ts";
import type { DoctorSubject, EventSample, Finding, SampledSource, SampledTable } from "./finding.ts";
import { checkGrants, checkOwnership } from "./grants-check.ts";
import { checkIndex, checkSharedIndex } from "./index-check.ts";
import { checkLogs } from "./log-check.ts";
import { checkManaged } from "./managed-check.ts";
import { checkKey, checkOrder, checkSerial } from "./order-check.ts";
import { checkLogTakers, checkOrphans, checkSharers, checkTakers } from "./pipelines-check.ts";
import { checkSchema, checkServer } from "./server-check.ts";
import { checkIds, checkRowSecurity, checkTables } from "./table-check.ts";
import { checkUpkeep } from "./upkeep-check.ts";
import { checkWal } from "./wal-check.ts";

const SEVERITIES = ["error", "warning", "note"];

/** Runs all checks. A failing check does not stop the others; only an unreachable database makes this throw. */
export async function examine(subject: DoctorSubject): Promise<readonly Finding[]> {
  // The check of the grants reports what the role may not do, with the statement that fixes it.
  const schema = await checkSchema(subject).catch((error: unknown) => {
    if (isRelayError(error, "GRANT_MISSING")) return null;
    throw error;
  });
  const { findings: tables, shaped } = await checkTables(subject);
  const { findings: unreadable, logs } = await checkLogs(subject);
  const findings = [...(schema ?? []), ...tables, ...unreadable];
  const look = async (check: string, work: () => Promise<readonly Finding[]>) => {
    findings.push(...(await work().catch((error: unknown) => notLookedAt(check, error))));
  };
  await look("grants", () => checkGrants(subject));
  await look("row security", () => checkRowSecurity(subject));
  if (schema?.length === 0) {
    await look("owners", () => checkOwnership(subject));
    await look("owners", () => checkSharers(subject));
    await look("pipelines", () => checkOrphans(subject));
    await look("takers", () => checkTakers(subject, shaped));
    await look("takers", () => checkLogTakers(subject, logs));
    await look("wal", () => checkWal(subject));
  }
  await look("settings", () => checkServer(subject));
  for (const table of shaped) {
    await look("index", () => checkIndex(subject, table));
    await look("index", () => checkSharedIndex(subject, table));
    findings.push(
      ...(table.shape.isSerial ? checkSerial(table.table) : checkKey(table.table, table.shape.keyText !== "null")),
    );
    await look("order", () => checkOrder(subject, table));
    await look("upkeep", () => checkUpkeep(subject, table));
  }
  for (const { hasKey, isManaged, keyName, table } of logs) {
    findings.push(...checkKey(table, hasKey, keyName));
    if (!isManaged) await look("ids", () => checkIds(subject, table));
  }
  for (const table of subject.managed ?? []) await look("managed", () => checkManaged(subject, table));
  const sources = await sampledSources(subject, [...sampledQueues(subject, shaped), ...logs], look);
  // Each may wait for its whole timeout, so they run in parallel.
  await Promise.all(subject.destinations.map((it) => look("destination", () => checkDestination(it, sources))));
  return findings.sort((left, right) => SEVERITIES.indexOf(left.severity) - SEVERITIES.indexOf(right.severity));
}

/** All sources, with samples where a destination needs its topics created. */
async function sampledSources(
  subject: DoctorSubject,
  tables: readonly SampledTable[],
  look: (check: string, work: () => Promise<readonly Finding[]>) => Promise<void>,
): Promise<readonly SampledSource[]> {
  const samples = new Map<string, readonly EventSample[]>();
  const isNeeded = subject.destinations.some(({ missingTopics }) => missingTopics !== undefined);
  for (const it of isNeeded ? tables : []) {
    await look("topics", async () => {
      samples.set(displayTable(it.table), await sampleEvents(subject.database, it));
      return [];
    });
  }
  return namedSources(subject).map((source) => ({ source, samples: samples.get(displayTable(source)) ?? [] }));
}

function notLookedAt(check: string, error: unknown): readonly Finding[] {
  if (!isRelayError(error) || error.code === "DATABASE_UNREACHABLE") throw error;
  const [what = "", fix = ""] = reasonOf(error).split(/ \[[A-Z_]+\] /);
  return [{ severity: "warning", check, what: `The check failed: ${what}`, fix }];
}
