import { type Command, Option } from "commander";
import { EXIT, Exit } from "../../service/exit.ts";

/** The output of a command: text for people, or JSON for programs. */
export type Form = "text" | "json";

/** Commands without JSON output: a web page, and a shell script. */
const TEXT_ONLY = new Set(["dev", "completion"]);

/** Adds `-o` to a command and its subcommands. */
export function addOutputOption(command: Command): void {
  for (const child of command.commands) addOutputOption(child);
  if (command.commands.length > 0) return;
  const about = TEXT_ONLY.has(command.name())
    ? "only text; this command has no JSON output"
    : "text, or JSON including errors";
  command.addOption(new Option("-o, --output <form>", about).choices(["text", "json"]).default("text"));
  command.hook("preAction", (_, action) => {
    if (TEXT_ONLY.has(action.name()) && action.opts<{ output: Form }>().output === "json") {
      throw new Exit(EXIT.usage, [`${action.name()} has no JSON output: omit -o json`]);
    }
  });
}

/** The output form that a command line asks for, even if it cannot be parsed. */
export function formIn(args: readonly string[]): Form {
  const text = args.slice(0, args.includes("--") ? args.indexOf("--") : undefined).join("\n");
  return /(?:^|\n)(?:-o[\n=]?|--output[\n=])json(?:\n|$)/.test(text) ? "json" : "text";
}

/** Prints a value as indented JSON. */
export function printJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value, null, 2)}\n`);
}
