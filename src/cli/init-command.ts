import { existsSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { type Command, Option } from "commander";
import { reasonOf } from "../core/errors.ts";
import { type End, EXIT, Exit } from "./exit.ts";

type Format = "yaml" | "json" | "ts";

/** `outbox-relay init`: a config file to begin with. It asks nothing, so that scripts can use it too. */
export function addInitCommand(program: Command, end: End): void {
  program
    .command("init")
    .description("write a config file with the few settings that one needs, into this folder")
    .addOption(new Option("--format <format>", "of the file").choices(["yaml", "json", "ts"]).default("yaml"))
    .option("--force", "overwrite the file that is there")
    .action(async ({ format, force = false }: { format: Format; force?: boolean }) => end(await init(format, force)));
}

async function init(format: Format, force: boolean): Promise<number> {
  const { starterConfig } = await import("../config/starter-config.ts");
  const { existingConfigFiles } = await import("../config/config-file.ts");
  const { file, text } = starterConfig(format);
  const path = resolve(file);
  const others = existingConfigFiles(process.cwd()).filter((name) => name !== file);
  if (others.length > 0) {
    throw new Exit(EXIT.usage, [
      `${others.join(" and ")} is here already, and only one config file is read: remove it first`,
    ]);
  }
  if (existsSync(path) && !force) {
    throw new Exit(EXIT.usage, [`${file} is here already: \`outbox-relay init --force\` overwrites it`]);
  }
  try {
    writeFileSync(path, text);
  } catch (error) {
    throw new Exit(EXIT.failed, [`${file} cannot be written: ${reasonOf(error)}`]);
  }
  process.stdout.write(`${file} is written. Next:
  edit it                        the database, the schemas, the destination
  outbox-relay config validate   tells what is missing or wrong
  outbox-relay migrate up        creates the relay's own schema
  outbox-relay run               delivers until stopped
`);
  return EXIT.ok;
}
