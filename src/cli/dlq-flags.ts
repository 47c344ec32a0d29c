import type { Command } from "commander";
import type { DeadLetterChoice } from "../operations/dead-letter-choice.ts";

export type Form = "text" | "json";

export interface ChoiceFlags {
  readonly source?: string;
  readonly type?: string;
  readonly key?: string;
  readonly group?: string;
}

export interface ChangeFlags extends ChoiceFlags {
  readonly all?: boolean;
  readonly reason?: string;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
  readonly output: Form;
}

export function withChoice(command: Command): Command {
  return command
    .option("--source <schema.table>", "of this table alone")
    .option("--type <pattern>", "of this type; * stands for anything")
    .option("--key <key>", "of this key")
    .option("--group <fingerprint>", "with this error, as dlq groups names it");
}

export function choiceOf(ids: readonly string[], { source, type, key, group }: ChoiceFlags): DeadLetterChoice {
  return { ids: ids.length === 0 ? undefined : ids, source, type, key, group };
}
