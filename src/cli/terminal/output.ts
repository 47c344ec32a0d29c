import { type Command, Option } from "commander";
import { EXIT, Exit } from "../../service/exit.ts";
import { type Paint, paint, plainLine } from "./plain-text.ts";

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

/** Colours of states that an operator looks for. */
const STATE_PAINTS: Readonly<Record<string, Paint>> = {
  ...{ delivered: "green", running: "green", done: "green" },
  ...{ parked: "yellow", paused: "yellow", retrying: "yellow", unrouted: "yellow" },
  ...{ dead: "red", broken: "red", "not served": "red", stopped: "red" },
};

/** A text table: columns as wide as needed, two blanks between them, numbers right-aligned. */
export function textTable(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const texts = rows.map((row) => row.map((cell) => plainLine(String(cell))));
  const widths = head.map((title, at) => Math.max(title.length, ...texts.map((row) => (row[at] ?? "").length)));
  const isNumber = head.map((_, at) => rows.length > 0 && rows.every((row) => typeof row[at] === "number"));
  const padded = (cells: readonly string[]) =>
    cells.map((cell, at) => (isNumber[at] ? cell.padStart(widths[at] ?? 0) : cell.padEnd(widths[at] ?? 0)));
  const stateAt = head.indexOf("STATE");
  const line = (cells: readonly string[]) => {
    const style = STATE_PAINTS[cells[stateAt] ?? ""];
    const shown = padded(cells).map((cell, at) => (at === stateAt && style ? paint(style, cell) : cell));
    return shown.join("  ").trimEnd();
  };
  return [paint("dim", padded(head).join("  ").trimEnd()), ...texts.map(line)].map((text) => `${text}\n`).join("");
}

/** An age, rounded: `3.2 s`, `4 min`, `2 h`, `5 d`. */
export function ageText(ms: number): string {
  const s = ms / 1_000;
  if (s < 10) return `${s.toFixed(1)} s`;
  if (s < 120) return `${Math.round(s)} s`;
  if (s < 7_200) return `${Math.round(s / 60)} min`;
  return s < 172_800 ? `${Math.round(s / 3_600)} h` : `${Math.round(s / 86_400)} d`;
}
