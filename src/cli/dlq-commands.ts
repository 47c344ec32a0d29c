import type { Command } from "commander";
import type { ShownDeadLetter } from "../operations/dead-letter-list.ts";
import type { ShownTo } from "../operations/redact-shown.ts";
import type { EditFlags } from "./dlq-edit.ts";
import { type ChangeFlags, type ChoiceFlags, choiceOf, type Form, withChoice } from "./dlq-flags.ts";
import { payloadText } from "./event-text.ts";
import { limitOf, oneLine, outputOption, printJson } from "./events-commands.ts";
import { type End, EXIT, Exit } from "./exit.ts";
import { choiceFilterOf, FILTER_HELP } from "./filter-argument.ts";
import { plainLine } from "./plain-text.ts";
import { textTable } from "./text-table.ts";

interface ListFlags extends ChoiceFlags {
  readonly resolved?: boolean;
  readonly limit: string;
  readonly cursor?: string;
  readonly output: Form;
}

/** `outbox-relay dlq list|groups|show|replay|discard`: events that wait for a person. */
export function addDlqCommands(program: Command, end: End): void {
  const dlq = program.command("dlq").description("dead letters: look at them, replay them, discard them");
  withChoice(dlq.command("list").description("the last ones first"))
    .argument("[filter...]", FILTER_HELP)
    .option("--resolved", "also those that were replayed or discarded")
    .option("--limit <number>", "dead letters on a page, at most 500", "50")
    .option("--cursor <text>", "go on behind a page, as that page said")
    .addOption(outputOption())
    .action(async (words: string[], flags: ListFlags) => end(await list(words, flags)));
  withChoice(
    dlq.command("groups").description("by error, without what is special to one event; the most frequent first"),
  )
    .argument("[filter...]", FILTER_HELP)
    .addOption(outputOption())
    .action(async (words: string[], flags: ChoiceFlags & { output: Form }) => end(await groups(words, flags)));
  dlq
    .command("show")
    .description("one dead letter with its payload and the error of every attempt")
    .argument("<id>", "the event's id")
    .option("--source <schema.table>", "where several sources have this id")
    .addOption(outputOption())
    .action(async (id: string, flags: { source?: string; output: Form }) => end(await show(id, flags)));
  withChoice(dlq.command("replay").description("try dead letters again, from the start and in order"))
    .argument("[id...]", "the events' ids")
    .option("--all", "every dead letter")
    .option("--reason <text>", "why, for the record")
    .option("--dry-run", "tell what would be replayed, and change nothing")
    .option("--yes", "do not ask")
    .addOption(outputOption())
    .action(async (ids: string[], flags: ChangeFlags) => end(await change("replay", ids, flags)));
  withChoice(
    dlq.command("discard").description("give dead letters up: they are never sent, what waits behind them goes on"),
  )
    .argument("[id...]", "the events' ids")
    .requiredOption("--reason <text>", "why, for the record")
    .option("--dry-run", "tell what would be discarded, and change nothing")
    .option("--yes", "do not ask")
    .addOption(outputOption())
    .action(async (ids: string[], flags: ChangeFlags) => end(await change("discard", ids, flags)));
  dlq
    .command("edit")
    .description("put another payload in the place of a dead letter's, and try it again")
    .argument("<id>", "of the event, or of the letter")
    .requiredOption("--payload-file <file>", "with the new payload, byte by byte")
    .option("--headers-file <file>", "with the new headers, a JSON object of texts")
    .option("--source <schema.table>", "where several sources have this id")
    .requiredOption("--reason <text>", "why, for the record")
    .addOption(outputOption())
    .action(async (id: string, flags: EditFlags) => {
      const { editCommand } = await import("./dlq-edit.ts");
      end(await editCommand(id, flags));
    });
}

async function list(words: readonly string[], flags: ListFlags): Promise<number> {
  const limit = limitOf(flags.limit);
  const chosen = await choiceFilterOf(words, choiceOf([], flags));
  const { withTarget } = await import("./operation-target.ts");
  const { listDeadLetters } = await import("../operations/dead-letter-list.ts");
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
      if (rows.length === 0) process.stderr.write("no such dead letter\n");
      else process.stdout.write(textTable(head, rows));
      if (page.cursor !== null) process.stderr.write(`more: add --cursor ${page.cursor}\n`);
    }
    return EXIT.ok;
  });
}

async function groups(words: readonly string[], flags: ChoiceFlags & { output: Form }): Promise<number> {
  const choice = await choiceFilterOf(words, choiceOf([], flags));
  const { withTarget } = await import("./operation-target.ts");
  const { groupDeadLetters } = await import("../operations/dead-letter-groups.ts");
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
        it.types.join(","),
        oneLine(it.error),
      ]);
      process.stdout.write(textTable(["GROUP", "COUNT", "KEYS", "LAST FAILED", "TYPES", "ERROR"], rows));
    }
    return EXIT.ok;
  });
}

async function show(id: string, flags: { source?: string; output: Form }): Promise<number> {
  const { withTarget } = await import("./operation-target.ts");
  const { showDeadLetters } = await import("../operations/dead-letter-list.ts");
  const { shownTo } = await import("../operations/redact-shown.ts");
  return await withTarget(async ({ database, shown }) => {
    const found = (await showDeadLetters(database, id, flags.source)).map((letter) => shownTo(letter, shown));
    if (found.length === 0)
      throw new Exit(EXIT.notFound, [`There is no dead letter ${id}. \`outbox-relay dlq list\` shows them.`]);
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
