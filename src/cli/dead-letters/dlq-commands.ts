import type { Command } from "commander";
import type { ShownDeadLetter } from "../../operations/dead-letters/dead-letter-list.ts";
import type { ShownTo } from "../../operations/events/redact-shown.ts";
import { type End, EXIT, Exit } from "../../service/exit.ts";
import { payloadText } from "../events/event-text.ts";
import { limitOf, oneLine } from "../events/events-commands.ts";
import { choiceFilterOf, FILTER_HELP } from "../events/filter-argument.ts";
import { type Form, printJson, textTable } from "../terminal/output.ts";
import { plainLine } from "../terminal/plain-text.ts";
import type { EditFlags } from "./dlq-edit.ts";
import { type ChangeFlags, type ChoiceFlags, choiceOf, withChoice } from "./dlq-flags.ts";

interface ListFlags extends ChoiceFlags {
  readonly resolved?: boolean;
  readonly limit: string;
  readonly cursor?: string;
  readonly output: Form;
}

/** `outbox-relay dlq list|groups|show|replay|discard|edit`: events that failed and wait for an operator. */
export function addDlqCommands(program: Command, end: End): void {
  const dlq = program.command("dlq").description("inspect, replay, discard and edit dead letters");
  withChoice(dlq.command("list").description("list dead letters, newest first"))
    .argument("[filter...]", FILTER_HELP)
    .option("--resolved", "include replayed and discarded ones")
    .option("--limit <number>", "page size, at most 500", "50")
    .option("--cursor <text>", "continue after a page, with the cursor that it printed")
    .action(async (words: string[], flags: ListFlags) => end(await list(words, flags)));
  withChoice(dlq.command("groups").description("group dead letters by normalized error, most frequent first"))
    .argument("[filter...]", FILTER_HELP)
    .action(async (words: string[], flags: ChoiceFlags & { output: Form }) => end(await groups(words, flags)));
  dlq
    .command("show")
    .description("show one dead letter with its payload and the error of every attempt")
    .argument("<id>", "event id")
    .option("--source <schema.table>", "required if several sources have this id")
    .action(async (id: string, flags: { source?: string; output: Form }) => end(await show(id, flags)));
  withChoice(
    dlq
      .command("replay")
      .description("deliver dead letters again, in order: a single id at once, several through a plan with a canary"),
  )
    .argument("[id...]", "event ids")
    .option("--all", "every dead letter")
    .option("--reason <text>", "reason, for the audit log")
    .option("--dry-run", "show what would be replayed without changing anything")
    .option("--yes", "skip the confirmation")
    .action(async (ids: string[], flags: ChangeFlags) => end(await change("replay", ids, flags)));
  withChoice(
    dlq
      .command("discard")
      .description(
        "discard dead letters: they are never sent, and the events behind them continue. A single id at once, several through a plan",
      ),
  )
    .argument("[id...]", "event ids")
    .option("--all", "every dead letter")
    .requiredOption("--reason <text>", "reason, for the audit log")
    .option("--dry-run", "show what would be discarded without changing anything")
    .option("--yes", "skip the confirmation")
    .action(async (ids: string[], flags: ChangeFlags) => end(await change("discard", ids, flags)));
  dlq
    .command("edit")
    .description("replace the payload of a dead letter and retry it")
    .argument("<id>", "event id or dead letter id")
    .requiredOption("--payload-file <file>", "file with the new payload, used as is")
    .option("--headers-file <file>", "file with the new headers, a JSON object of strings")
    .option("--source <schema.table>", "required if several sources have this id")
    .requiredOption("--reason <text>", "reason, for the audit log")
    .action(async (id: string, flags: EditFlags) => {
      const { editCommand } = await import("./dlq-edit.ts");
      end(await editCommand(id, flags));
    });
}

async function list(words: readonly string[], flags: ListFlags): Promise<number> {
  const limit = limitOf(flags.limit);
  const chosen = await choiceFilterOf(words, choiceOf([], flags));
  const { withTarget } = await import("../operation-target.ts");
  const { listDeadLetters } = await import("../../operations/dead-letters/dead-letter-list.ts");
  return await withTarget(async ({ database }) => {
    const choice = { ...chosen, resolved: flags.resolved ?? false };
    const page = await listDeadLetters(database, choice, { limit, cursor: flags.cursor });
    if (flags.output === "json") printJson(page);
    else {
      const rows = page.deadLetters.map((it) => {
        const state = it.resolution?.how ?? "dead";
        return [
          it.lastFailedAt ?? "-",
          state,
          it.type,
          it.key ?? "-",
          it.id,
          it.source,
          it.group,
          it.failures,
          oneLine(it.reason),
        ];
      });
      const head = ["LAST FAILED", "STATE", "TYPE", "KEY", "ID", "SOURCE", "GROUP", "FAILURES", "REASON"];
      if (rows.length === 0) process.stderr.write("no dead letters match\n");
      else process.stdout.write(textTable(head, rows));
      if (page.cursor !== null) process.stderr.write(`next page: --cursor ${page.cursor}\n`);
    }
    return EXIT.ok;
  });
}

async function groups(words: readonly string[], flags: ChoiceFlags & { output: Form }): Promise<number> {
  const choice = await choiceFilterOf(words, choiceOf([], flags));
  const { withTarget } = await import("../operation-target.ts");
  const { groupDeadLetters } = await import("../../operations/dead-letters/dead-letter-groups.ts");
  return await withTarget(async ({ database }) => {
    const found = await groupDeadLetters(database, choice);
    if (flags.output === "json") printJson({ groups: found });
    else if (found.length === 0) process.stderr.write("no dead letters\n");
    else {
      const rows = found.map((it) => [
        it.group,
        it.count,
        it.keys,
        it.lastFailedAt ?? "-",
        it.destinations.join(","),
        it.status ?? "-",
        it.types.join(","),
        oneLine(it.error),
      ]);
      const head = ["GROUP", "COUNT", "KEYS", "LAST FAILED", "DESTINATION", "STATUS", "TYPES", "ERROR"];
      process.stdout.write(textTable(head, rows));
      process.stdout.write("\nThe newest event of each group:\n");
      for (const { example, group } of found) process.stdout.write(`${group}  ${plainLine(example)}\n`);
    }
    return EXIT.ok;
  });
}

async function show(id: string, flags: { source?: string; output: Form }): Promise<number> {
  const { withTarget } = await import("../operation-target.ts");
  const { showDeadLetters } = await import("../../operations/dead-letters/dead-letter-list.ts");
  const { shownTo } = await import("../../operations/events/redact-shown.ts");
  return await withTarget(async ({ database, shown }) => {
    const found = (await showDeadLetters(database, id, flags.source)).map((letter) => shownTo(letter, shown));
    if (found.length === 0)
      throw new Exit(EXIT.notFound, [`no dead letter with id ${id}. \`outbox-relay dlq list\` lists them.`]);
    if (flags.output === "json") printJson({ deadLetters: found });
    else process.stdout.write(found.map(letterText).join("\n"));
    return EXIT.ok;
  });
}

function letterText(letter: ShownTo<ShownDeadLetter>): string {
  const { payload, resolution } = letter;
  const lines = [
    ["id", letter.id],
    ["letter", letter.letterId],
    ["source", letter.source],
    ["type", letter.type],
    ["key", letter.key ?? "-"],
    ["correlation", letter.correlationId ?? "-"],
    ["failures", String(letter.failures)],
    ["group", letter.group],
    ...(resolution === null
      ? []
      : [
          [
            resolution.how,
            `${resolution.at} by ${resolution.by ?? "?"}${resolution.reason === null ? "" : `: ${resolution.reason}`}`,
          ],
        ]),
    ...Object.entries(letter.headers).map(([name, value]) => ["header", `${name}: ${value}`]),
    ...letter.errors.map(({ at, attempt, reason }) => [`attempt ${attempt}`, `${at}  ${reason}`]),
    ["payload", payloadText(payload)],
  ];
  return `${lines.map(([name = "", value = ""]) => `${name.padEnd(12)}${plainLine(value)}`).join("\n")}\n${payload?.text ?? ""}\n`;
}

async function change(verb: "replay" | "discard", ids: readonly string[], flags: ChangeFlags): Promise<number> {
  const { changeCommand } = await import("./dlq-change.ts");
  return await changeCommand(verb, ids, flags);
}
