import { type Command, Option } from "commander";
import { configSources } from "./config-sources.ts";
import { type End, EXIT } from "./exit.ts";

/** `outbox-relay config print|validate|schema`. */
export function addConfigCommands(program: Command, end: End): void {
  const config = program.command("config").description("show, check or describe the settings");
  config
    .command("print")
    .description("every setting in force, and where it comes from; secrets are hidden")
    .addOption(new Option("-o, --output <form>", "of the list").choices(["text", "json"]).default("text"))
    .action(async ({ output }: { output: "text" | "json" }) => end(await printConfig(output)));
  config
    .command("validate")
    .description("check all settings as `run` does: 0 they can be used, 2 they cannot")
    .action(async () => end(await validateConfig()));
  config
    .command("schema")
    .description("the JSON Schema of the config file")
    .action(async () => {
      const { configSchema } = await import("../config/config-schema.ts");
      print(`${JSON.stringify(configSchema(), null, 2)}\n`);
      end(EXIT.ok);
    });
}

/** What is in force is printed first; then what is missing for a start is told, as `validate` does. */
async function printConfig(output: "text" | "json"): Promise<number> {
  const { checkedService, loadSettings } = await import("../config/load-config.ts");
  const { effectiveSettings, originText, valueText } = await import("../config/effective-settings.ts");
  const read = await loadSettings(configSources());
  const settings = effectiveSettings(read);
  if (output === "json") print(`${JSON.stringify(settings, null, 2)}\n`);
  else {
    const rows = settings.map(({ name, value, origin }) => [name, valueText(name, value), originText(origin)] as const);
    print(rows.map((row) => `${aligned(row, rows)}\n`).join(""));
  }
  await checkedService(read);
  return EXIT.ok;
}

async function validateConfig(): Promise<number> {
  const { loadConfig } = await import("../config/load-config.ts");
  const { config, read } = await loadConfig(configSources());
  for (const warning of config.warnings) process.stderr.write(`warning: ${warning}\n`);
  print(`the settings can be used${read.file === null ? "" : ` (${read.file})`}\n`);
  return EXIT.ok;
}

/** Very long values push only their own line. */
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
