import type { Command } from "commander";
import { type End, EXIT } from "../../service/exit.ts";
import { configSources } from "../config-sources.ts";
import { type Form, printJson } from "../terminal/output.ts";

/** `outbox-relay config print|validate|schema`. */
export function addConfigCommands(program: Command, end: End): void {
  const config = program.command("config").description("print, validate or describe the settings");
  config
    .command("print")
    .description("print every setting in force with its origin; secrets are hidden")
    .action(async ({ output }: { output: Form }) => end(await printConfig(output)));
  config
    .command("validate")
    .description("validate all settings as `run` does: 0 valid, 2 invalid; a missing destination is only a warning")
    .action(async ({ output }: { output: Form }) => end(await validateConfig(output)));
  config
    .command("schema")
    .description("print the JSON Schema of the config file")
    .action(async () => {
      const { configSchema } = await import("../../config/reading/config-schema.ts");
      printJson(configSchema());
      end(EXIT.ok);
    });
}

/** Prints the settings in force first, then fails like `validate` if they are not enough to start. */
async function printConfig(output: Form): Promise<number> {
  const { checkedService, loadSettings } = await import("../../config/load-config.ts");
  const { effectiveSettings, originText, valueText } = await import("../../config/reading/effective-settings.ts");
  const read = await loadSettings(configSources());
  const settings = effectiveSettings(read);
  if (output === "json") printJson(settings);
  else {
    const rows = settings.map(({ name, value, origin }) => [name, valueText(name, value), originText(origin)] as const);
    print(rows.map((row) => `${aligned(row, rows)}\n`).join(""));
  }
  await checkedService(read);
  return EXIT.ok;
}

async function validateConfig(output: Form): Promise<number> {
  const { loadConfig } = await import("../../config/load-config.ts");
  const { config, read } = await loadConfig(configSources(), { mayLackDestination: true });
  const missing = config.destinations.length > 0 ? [] : ["no destination is set yet; `run` needs one"];
  const warnings = [...config.warnings, ...missing];
  if (output === "json") {
    printJson({ file: read.file, warnings });
    return EXIT.ok;
  }
  for (const warning of warnings) process.stderr.write(`warning: ${warning}\n`);
  print(`the settings are valid${read.file === null ? "" : ` (${read.file})`}\n`);
  return EXIT.ok;
}

/** A longer value breaks the alignment of its own line only. */
const WIDTH_MAX = 48;

function aligned(row: readonly string[], rows: readonly (readonly string[])[]): string {
  const width = (column: number) => Math.min(WIDTH_MAX, Math.max(...rows.map((it) => it[column]?.length ?? 0)));
  return row
    .map((cell, column) => cell.padEnd(width(column)))
    .join("  ")
    .trimEnd();
}

function print(text: string): void {
  process.stdout.write(text);
}
