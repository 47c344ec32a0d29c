import type { Command } from "commander";
import { plural } from "../../core/plural.ts";
import type { Finding } from "../../operations/doctor/finding.ts";
import { type End, EXIT } from "../../service/exit.ts";
import type { Form } from "../terminal/output.ts";
import { paint } from "../terminal/plain-text.ts";

/** `outbox-relay doctor`. */
export function addDoctorCommand(program: Command, end: End): void {
  program
    .command("doctor")
    .description(
      "check database, tables, grants and destinations, and print a fix for each finding: 0 no findings, 3 findings",
    )
    .action(async ({ output }: { output: Form }) => {
      end(await doctor(output));
    });
}

async function doctor(output: Form): Promise<number> {
  const { loadConfig } = await import("../../config/load-config.ts");
  const { configSources } = await import("../config-sources.ts");
  const { config } = await loadConfig(configSources(), { mayLackDestination: true });
  if (config.requests !== null) {
    const { doctorCommand } = await import("../requests/requests-tools.ts");
    return await doctorCommand((findings, things) => show(findings, output, config.secrets, things));
  }
  const { withDatabase } = await import("../operation-target.ts");
  const { examineRedisStore, examineService } = await import("../../service/examine-service.ts");
  if (config.store !== null) {
    const findings = await examineRedisStore(config, config.store);
    return await show(findings, output, config.secrets, "the outbox in Redis and the destinations");
  }
  return await withDatabase(config.database, async (database) => {
    const { findings, tables } = await examineService(config, database);
    const things = `${plural(tables, "table")}, their grants, the schema and the destinations`;
    return await show(findings, output, config.secrets, things);
  });
}

async function show(
  findings: readonly Finding[],
  output: Form,
  secrets: readonly string[],
  things: string,
): Promise<number> {
  const { redactor } = await import("../../telemetry/logs/redaction.ts");
  const text = output === "json" ? `${JSON.stringify(findings, null, 2)}\n` : findingsText(findings, things);
  // Findings quote servers, whose messages can contain secrets.
  process.stdout.write(redactor(secrets)(text));
  return findings.some(({ severity }) => severity !== "note") ? EXIT.unhealthy : EXIT.ok;
}

const MARKS = { error: "✗", warning: "!", note: "-" } as const;
const PAINTS = { error: "red", warning: "yellow", note: "dim" } as const;

function findingsText(findings: readonly Finding[], things: string): string {
  const count = (wanted: Finding["severity"]) => findings.filter(({ severity }) => severity === wanted).length;
  const [errors, warnings] = [count("error"), count("warning")];
  const texts = findings.map(({ check, fix, severity, what }) => {
    const indented = fix
      .split("\n")
      .map((line) => `    ${line}\n`)
      .join("");
    return `${paint(PAINTS[severity], `${MARKS[severity]} ${check}`)}: ${what}\n${indented}\n`;
  });
  const end =
    errors + warnings === 0
      ? `No problems found: ${things}.\n`
      : `${plural(errors, "error")}, ${plural(warnings, "warning")}\n`;
  return `${texts.join("")}${end}`;
}
