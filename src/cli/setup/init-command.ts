import { existsSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { type Command, Option } from "commander";
import { reasonOf } from "../../core/errors.ts";
import { type End, EXIT, Exit } from "../../service/exit.ts";
import { type Form, printJson } from "../terminal/output.ts";

interface InitFlags {
  readonly format: "yaml" | "json" | "ts";
  readonly force?: boolean;
  readonly output: Form;
}

/** `outbox-relay init`: writes a starter config file. It asks nothing, so that scripts can use it too. */
export function addInitCommand(program: Command, end: End): void {
  program
    .command("init")
    .description("write a starter config file into this folder")
    .addOption(new Option("--format <format>", "file format").choices(["yaml", "json", "ts"]).default("yaml"))
    .option("--force", "overwrite an existing file")
    .action(async (flags: InitFlags) => end(await init(flags)));
}

async function init({ force = false, format, output }: InitFlags): Promise<number> {
  const { starterConfig } = await import("../../config/reading/starter-config.ts");
  const { existingConfigFiles } = await import("../../config/reading/config-file.ts");
  const { file, text } = starterConfig(format);
  const path = resolve(file);
  const others = existingConfigFiles(process.cwd()).filter((name) => name !== file);
  if (others.length > 0) {
    throw new Exit(EXIT.usage, [
      `${others.join(" and ")} already exists, and the relay reads only one config file: remove it first`,
    ]);
  }
  if (existsSync(path) && !force) {
    throw new Exit(EXIT.usage, [`${file} already exists: \`outbox-relay init --force\` overwrites it`]);
  }
  try {
    writeFileSync(path, text);
  } catch (error) {
    throw new Exit(EXIT.failed, [`${file} cannot be written: ${reasonOf(error)}`]);
  }
  if (output === "json") {
    printJson({ file: path });
    return EXIT.ok;
  }
  process.stdout.write(`Created ${file}. Next:
  edit it                        the database, the schemas, the destination
  outbox-relay config validate   reports what is missing or wrong
  outbox-relay migrate up        creates the relay's own schema
  outbox-relay run               delivers until stopped
`);
  return EXIT.ok;
}
