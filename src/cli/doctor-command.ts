import { type Command, Option } from "commander";
import type { Finding } from "../operations/doctor/finding.ts";
import { type End, EXIT } from "./exit.ts";

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
  const { examineService } = await import("./examine-service.ts");
  return await withDatabase(config.database, async (database) => {
    const { findings, tables } = await examineService(config, database);
    const things = `${tables} tables, their grants, the schema and where the events go`;
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
