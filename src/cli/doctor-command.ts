import { type Command, Option } from "commander";
import type { DestinationConfig } from "../config/destinations/destination-scheme.ts";
import { isLog } from "../config/presets.ts";
import { filledRoute, restrictedTo } from "../config/routes-config.ts";
import type { ServiceConfig } from "../config/service-config.ts";
import type { DoctorDestination, Finding } from "../operations/doctor/finding.ts";
import { compileRoutes, type Routes } from "../routing/routes.ts";
import { type End, EXIT } from "./exit.ts";

/** Brokers that do not answer in time are told as such. */
const RIGHTS_MS = 15_000;

export function addDoctorCommand(program: Command, end: End): void {
  program
    .command("doctor")
    .description(
      "look at database, tables, grants and destination, and print what mends each finding: 0 fine, 3 findings",
    )
    .addOption(new Option("-o, --output <form>").choices(["text", "json"]).default("text"))
    .action(async ({ output }: { output: "text" | "json" }) => {
      end(await doctor(output));
    });
}

async function doctor(output: "text" | "json"): Promise<number> {
  const { loadConfig } = await import("../config/load-config.ts");
  const { configSources } = await import("./config-sources.ts");
  const { config } = await loadConfig(configSources());
  if (config.requests !== null) {
    const { doctorCommand } = await import("./requests-tools.ts");
    return await doctorCommand((findings, things) => show(findings, output, config.secrets, things));
  }
  const { withDatabase } = await import("./with-database.ts");
  const { TableFinder } = await import("../config/find-tables.ts");
  const { examine } = await import("../operations/doctor/doctor.ts");
  return await withDatabase(config.database, async (database) => {
    const found = await new TableFinder(database, { ...config, subscribers: [] }).find();
    // What the doctor looks for in a queue, such as marks and their indexes, a log has no need of.
    const tables = found
      .filter(({ preset }) => !isLog(preset))
      .map(({ isThere, preset, schema, table }) => ({
        schema,
        table,
        isThere,
        isOpenOutbox: preset === "openoutbox",
      }));
    const findings = await examine({
      database,
      columns: config.sources.columns,
      tables,
      managed: found.filter(({ preset }) => preset === "managed").map(({ schema, table }) => ({ schema, table })),
      wal: found.filter(({ preset }) => preset === "wal").map(({ schema, table }) => ({ schema, table })),
      hasLogs: found.some(({ preset }) => isLog(preset)),
      destinations: config.destinations.map((it) => doctorDestination(config, it, tables.length)),
      retentionMs: config.retentionMs,
    });
    const things = `${found.length} tables, their grants, the schema and where the events go`;
    return await show(findings, output, config.secrets, things);
  });
}

async function show(
  findings: readonly Finding[],
  output: "text" | "json",
  secrets: readonly string[],
  things: string,
): Promise<number> {
  const { redactor } = await import("../telemetry/redaction.ts");
  const text = output === "json" ? `${JSON.stringify(findings, null, 2)}\n` : findingsText(findings, things);
  // Findings quote what servers said.
  process.stdout.write(redactor(secrets)(text));
  return findings.length > 0 ? EXIT.unhealthy : EXIT.ok;
}

function doctorDestination(config: ServiceConfig, destination: DestinationConfig, tables: number): DoctorDestination {
  const { addresses, isExactlyOnce, missingTopics, name, topicFix } = destination;
  const slots = Math.max(1, tables) * config.lanes;
  return {
    name,
    brokers: addresses,
    rulesFor: (source) => routesFor(config, source).filterFor(name),
    topicOf: (type, source) => topicOf(config, name, type, source),
    ...(isExactlyOnce ? { prepareTransactions: () => prepareTransactions(destination, slots) } : {}),
    ...(missingTopics === undefined ? {} : { missingTopics }),
    ...(topicFix === undefined ? {} : { topicFix }),
  };
}

interface SourceName {
  readonly schema: string;
  readonly table: string;
}

function routesFor({ destinations, routes, sources }: ServiceConfig, source: SourceName): Routes {
  const filled = restrictedTo(sources.only, routes).map((route) => filledRoute(route, source, unknownTopic));
  return compileRoutes(
    filled,
    destinations.map(({ name }) => name),
  );
}

/** Null when the type goes elsewhere, or when more than the type decides. */
function topicOf(config: ServiceConfig, destination: string, type: string, source: SourceName): string | null {
  const route = routesFor(config, source).routeOfType(type, destination);
  if (route === undefined) return null;
  const nothing = { key: null, payload: Buffer.alloc(0), headers: {}, correlationId: null, createdAt: null };
  try {
    return route.topic === undefined ? type : route.topic({ id: "", type, ...nothing });
  } catch {
    return null;
  }
}

function unknownTopic(what: string): never {
  throw new Error(`${what} needs more than the type`);
}

/** What the service does before it starts: it makes the ledger if it is missing, and finds out what it may do. */
async function prepareTransactions(destination: DestinationConfig, slots: number): Promise<void> {
  const publisher = await destination.open();
  const { promise: silence, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`no answer within ${RIGHTS_MS / 1_000} s`)), RIGHTS_MS);
  try {
    await Promise.race([publisher.transactions?.prepare(slots), silence]);
  } finally {
    clearTimeout(timer);
    await publisher.close();
  }
}

function findingsText(findings: readonly Finding[], things: string): string {
  if (findings.length === 0) return `All is well: ${things}.\n`;
  const texts = findings.map(({ check, fix, severity, what }) => {
    const indented = fix
      .split("\n")
      .map((line) => `    ${line}\n`)
      .join("");
    return `${severity === "error" ? "✗" : "!"} ${check}: ${what}\n${indented}`;
  });
  const errors = findings.filter(({ severity }) => severity === "error").length;
  return `${texts.join("\n")}\n${errors} errors, ${findings.length - errors} warnings\n`;
}
