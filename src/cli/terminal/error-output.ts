import { CommanderError } from "commander";
import { ConfigProblems } from "../../config/reading/config-problems.ts";
import { isRelayError, reasonOf } from "../../core/errors.ts";
import { EXIT, Exit } from "../../service/exit.ts";
import type { Form } from "./output.ts";
import { paint, terminalText } from "./plain-text.ts";

/** Why a command failed, for both output forms. */
interface Failure {
  readonly exitCode: number;
  /** Stable: the code of a relay error, or one per exit code. */
  readonly code: string;
  readonly lines: readonly string[];
}

const CODES: Readonly<Record<number, string>> = {
  [EXIT.failed]: "FAILED",
  [EXIT.usage]: "USAGE",
  [EXIT.unhealthy]: "UNHEALTHY",
  [EXIT.notFound]: "NOT_FOUND",
  [EXIT.partly]: "PARTLY",
};

/** Errors that the operator fixes in the settings, the grants or the schema. */
const USER_FIXABLE: ReadonlySet<string> = new Set([
  "CONFIG_INVALID",
  "CONFLICT",
  "SCHEMA_MISSING",
  "SCHEMA_OLDER",
  "SCHEMA_NEWER",
  "GRANT_MISSING",
  "DATABASE_REFUSED",
  "TRANSACTIONS_REFUSED",
  "LEDGER_UNFIT",
]);

/** Prints an error to standard error and returns its exit code. A requested help or version is no error. */
export function explain(error: unknown, form: Form): number {
  if (error instanceof CommanderError && error.exitCode === 0) return EXIT.ok;
  const { code, exitCode, lines } = failureOf(error);
  if (form === "json") {
    const document = { error: { code, message: lines.join("; "), exitCode, ...(lines.length > 1 ? { lines } : {}) } };
    process.stderr.write(`${JSON.stringify(document)}\n`);
  } else printErrors(lines);
  return exitCode;
}

/** Prints errors in the common form of the command line; also for errors that do not end the command. */
export function printErrors(lines: readonly string[]): void {
  const text = lines.map((line) => `${paint("red", "outbox-relay:", process.stderr)} ${line}\n`).join("");
  // As bytes, so that a guarded stream does not escape the text twice.
  process.stderr.write(Buffer.from(terminalText(text)));
}

function failureOf(error: unknown): Failure {
  if (error instanceof CommanderError) return { exitCode: EXIT.usage, code: "USAGE", lines: parseFault(error) };
  if (error instanceof Exit) return { exitCode: error.code, code: CODES[error.code] ?? "FAILED", lines: error.lines };
  if (error instanceof ConfigProblems) {
    return { exitCode: EXIT.usage, code: error.code, lines: error.problems };
  }
  if (!isRelayError(error)) {
    const text = error instanceof Error ? (error.stack ?? error.message) : reasonOf(error);
    return { exitCode: EXIT.failed, code: "UNEXPECTED", lines: [text] };
  }
  const { code, message } = error;
  const lines = [message];
  if (code === "SCHEMA_MISSING" || code === "SCHEMA_OLDER") {
    lines.push("Run `outbox-relay migrate up`, or start with `outbox-relay run --migrate`.");
  }
  if (code === "NOTHING_MATCHES") return { exitCode: EXIT.notFound, code, lines };
  return { exitCode: USER_FIXABLE.has(code) ? EXIT.usage : EXIT.failed, code, lines };
}

/** The missing subcommand: commander has already printed the help. */
function parseFault({ code, message }: CommanderError): readonly string[] {
  if (code === "commander.help") return ["Missing command: write one of those that the help lists."];
  return message.replace(/^error: /, "").split("\n");
}
