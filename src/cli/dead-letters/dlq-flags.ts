import type { Command } from "commander";
import type { DeadLetterChoice } from "../../operations/dead-letters/dead-letter-choice.ts";
import type { Form } from "../terminal/output.ts";

/** Options that select dead letters. */
export interface ChoiceFlags {
  readonly source?: string;
  readonly type?: string;
  readonly key?: string;
  readonly group?: string;
}

/** Options of the commands that change dead letters. */
export interface ChangeFlags extends ChoiceFlags {
  readonly all?: boolean;
  readonly reason?: string;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
  readonly output: Form;
}

/** Adds the options that select dead letters. */
export function withChoice(command: Command): Command {
  return command
    .option("--source <schema.table>", "only this table")
    .option("--type <pattern>", "only this type; * matches anything")
    .option("--key <key>", "only this key")
    .option(
      "--group <fingerprint>",
      "only these error groups: ids from `dlq groups`, or prefixes, separated by commas",
    );
}

/** The choice of dead letters that the options make. */
export function choiceOf(ids: readonly string[], { source, type, key, group }: ChoiceFlags): DeadLetterChoice {
  return { ids: ids.length === 0 ? undefined : ids, source, type, key, group };
}
