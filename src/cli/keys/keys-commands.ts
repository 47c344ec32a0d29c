import { type Command, Option } from "commander";
import type { OperationTarget } from "../../operations/events/event-source.ts";
import type { KeyAction } from "../../operations/keys/key-actions.ts";
import { KEY_KINDS, type KeyKind, type ListedKey } from "../../operations/keys/key-list.ts";
import { type End, EXIT, Exit } from "../../service/exit.ts";
import { limitOf, oneLine } from "../events/events-commands.ts";
import { matchingPipelines, userName } from "../pipelines/pause-commands.ts";
import { printErrors } from "../terminal/error-output.ts";
import { type Form, printJson, textTable } from "../terminal/output.ts";

interface KeyFlags {
  readonly reason?: string;
  readonly output: Form;
}

const DESCRIPTIONS: Readonly<Record<KeyAction, string>> = {
  retry: "retry the event that blocks the key now",
  skip: "continue the key without its dead head, which stays a dead letter",
  resume: "retry all failed events of the key now, in order",
  discard: "discard the dead head that blocks the key",
};

const PAST: Readonly<Record<KeyAction, string>> = {
  retry: "is retried within seconds",
  skip: "is skipped: it stays a dead letter, and the key continues",
  resume: "is retried within seconds",
  discard: "is discarded, and the key continues",
};

/** `outbox-relay keys list|retry|skip|resume|discard`: keys that are blocked by a failed event. */
export function addKeysCommands(program: Command, end: End): void {
  const keys = program.command("keys").description("inspect and unblock keys that wait behind a failed event");
  addKeysList(keys, end);
  for (const action of Object.keys(DESCRIPTIONS) as KeyAction[]) {
    const command = keys
      .command(action)
      .description(DESCRIPTIONS[action])
      .argument("<pipeline>", "a pipeline, or a source that only one pipeline reads")
      .argument("<keys...>", "one or more keys");
    const needsReason = action === "skip" || action === "discard";
    if (needsReason) command.requiredOption("--reason <text>", "reason, for the audit log");
    else command.option("--reason <text>", "reason, for the audit log");
    command.action(async (name: string, keys: string[], flags: KeyFlags) => end(await act(action, name, keys, flags)));
  }
}

async function act(
  action: KeyAction,
  name: string,
  keys: readonly string[],
  { output, reason }: KeyFlags,
): Promise<number> {
  const { withTarget } = await import("../operation-target.ts");
  const { actOnKeys } = await import("../../operations/keys/key-actions.ts");
  const { actOnKey } = await import("../../operations/keys/key-actions.ts");
  return await withTarget(async (target) => {
    const pipeline = await onePipeline(target, name);
    const author = { by: userName(), reason, via: "cli" as const };
    const [key = ""] = keys;
    // A single key fails with its own error, which says why it cannot be changed.
    const { changed, failed } =
      keys.length > 1
        ? await actOnKeys(
            target,
            action,
            keys.map((it) => ({ pipeline, key: it })),
            author,
          )
        : { changed: (await actOnKey(target, action, { pipeline, key, author })) ?? [], failed: [] };
    if (changed.length === 0 && keys.length === 1) {
      throw new Exit(EXIT.notFound, [`key ${key} of ${pipeline} is not blocked`]);
    }
    if (output === "json") printJson({ changed, ...(keys.length > 1 ? { failed } : {}) });
    else {
      for (const id of changed) process.stdout.write(`${id} ${PAST[action]}\n`);
      printErrors(failed.map((it) => `key ${it.key} of ${pipeline}: ${it.reason}`));
    }
    if (changed.length > 0) return failed.length > 0 ? EXIT.partly : EXIT.ok;
    return EXIT.notFound;
  });
}

/** The only pipeline of that name or source. */
async function onePipeline({ database }: OperationTarget, name: string): Promise<string> {
  const { knownPipelines } = await import("../../operations/pipelines/pipelines.ts");
  const [selected, ...others] = await matchingPipelines(await knownPipelines(database), name);
  if (selected !== undefined && others.length === 0) return selected.pipeline;
  const names = [selected, ...others].map((it) => it?.pipeline).join(", ");
  throw new Exit(EXIT.usage, [`${name} matches several pipelines: name one of ${names}`]);
}

interface ListFlags {
  readonly kind?: KeyKind;
  readonly pipeline?: string;
  readonly contains?: string;
  readonly limit: string;
  readonly cursor?: string;
  readonly output: Form;
}

/** `outbox-relay keys list`. */
function addKeysList(keys: Command, end: End): void {
  keys
    .command("list")
    .description("list blocked keys with the event that blocks each, or the busiest keys")
    .addOption(
      new Option(
        "--kind <kind>",
        "parked: waits for an operator; retrying: waits for a retry of its head; hot: busiest keys",
      ).choices([...KEY_KINDS]),
    )
    .option("--pipeline <name>", "only this pipeline, or a source that only one pipeline reads")
    .option("--contains <text>", "only keys that contain this text, in any letter case")
    .option("--limit <number>", "page size, at most 500", "50")
    .option("--cursor <text>", "continue after a page, with the cursor that it printed")
    .action(async (flags: ListFlags) => end(await list(flags)));
}

async function list({ contains, cursor, kind, limit, output, pipeline: name }: ListFlags): Promise<number> {
  const rows = limitOf(limit);
  const { withTarget } = await import("../operation-target.ts");
  const { listKeys } = await import("../../operations/keys/key-list.ts");
  return await withTarget(async (target) => {
    const pipeline = name === undefined ? undefined : await onePipeline(target, name);
    const page = await listKeys(target, { kind, pipeline, q: contains }, { limit: rows, cursor });
    if (output === "json") printJson(page);
    else if (page.keys.length === 0) process.stderr.write("no keys match\n");
    else process.stdout.write(textTable(HEAD, page.keys.map(cells)));
    if (output === "text" && page.cursor !== null) process.stderr.write(`next page: --cursor ${page.cursor}\n`);
    return EXIT.ok;
  });
}

const HEAD = ["KEY", "KIND", "PIPELINE", "WAITING", "SINCE", "HEAD", "REASON"];

function cells({ head, key, kind, pipeline, recent, waiting }: ListedKey): string[] {
  const number = waiting === null ? "?" : `${waiting.count}${waiting.isMore ? "+" : ""}`;
  const busy = recent === null ? number : `${recent.count} of the newest ${recent.of}`;
  return [key, kind, pipeline, busy, head?.firstFailedAt ?? "-", head?.id ?? "-", oneLine(head?.reason ?? "")];
}
