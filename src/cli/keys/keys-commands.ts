import type { Command } from "commander";
import type { KeyAction } from "../../operations/keys/key-actions.ts";
import { type End, EXIT, Exit } from "../../service/exit.ts";
import { matchingPipelines, userName } from "../pipelines/pause-commands.ts";
import { printErrors } from "../terminal/error-output.ts";
import { type Form, printJson } from "../terminal/output.ts";
import { addKeysList } from "./keys-list-command.ts";

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
  const { actOnKeys } = await import("../../operations/keys/key-bulk.ts");
  const { actOnKey } = await import("../../operations/keys/key-actions.ts");
  const { knownPipelines } = await import("../../operations/pipelines/pipelines.ts");
  return await withTarget(async (target) => {
    const [selected, ...others] = await matchingPipelines(await knownPipelines(target.database), name);
    if (selected === undefined || others.length > 0) {
      const names = [selected, ...others].map((it) => it?.pipeline).join(", ");
      throw new Exit(EXIT.usage, [`${name} matches several pipelines: name one of ${names}`]);
    }
    const { pipeline } = selected;
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
