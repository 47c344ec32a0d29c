import type { Command } from "commander";
import type { KeyAction } from "../operations/keys/key-actions.ts";
import { outputOption, printJson } from "./events-commands.ts";
import { type End, EXIT, Exit } from "./exit.ts";
import { addKeysList } from "./keys-list-command.ts";
import { meantBy, userName } from "./pause-commands.ts";

interface KeyFlags {
  readonly reason?: string;
  readonly output: "text" | "json";
}

const DESCRIPTIONS: Readonly<Record<KeyAction, string>> = {
  retry: "try the event again now that the key waits for",
  skip: "let the key go on without its dead head, which stays a dead letter",
  resume: "try everything of the key again now that failed, in order",
  discard: "give up for good the dead head that the key waits for",
};

const PAST: Readonly<Record<KeyAction, string>> = {
  retry: "is tried again, within seconds",
  skip: "is skipped: it stays a dead letter, the key goes on",
  resume: "is tried again, within seconds",
  discard: "is given up, the key goes on",
};

/** `outbox-relay keys list|retry|skip|resume|discard`: keys that stand still behind an event that failed. */
export function addKeysCommands(program: Command, end: End): void {
  const keys = program.command("keys").description("keys that stand still behind an event that failed");
  addKeysList(keys, end);
  for (const action of Object.keys(DESCRIPTIONS) as KeyAction[]) {
    const command = keys
      .command(action)
      .description(DESCRIPTIONS[action])
      .argument("<pipeline>", "a pipeline, or a source that one pipeline reads")
      .argument("<key>");
    const needsReason = action === "skip" || action === "discard";
    if (needsReason) command.requiredOption("--reason <text>", "why, for the record");
    else command.option("--reason <text>", "why, for the record");
    command
      .addOption(outputOption())
      .action(async (name: string, key: string, flags: KeyFlags) => end(await act(action, name, key, flags)));
  }
}

async function act(action: KeyAction, name: string, key: string, { output, reason }: KeyFlags): Promise<number> {
  const { withTarget } = await import("./operation-target.ts");
  const { actOnKey } = await import("../operations/keys/key-actions.ts");
  const { knownPipelines } = await import("../operations/pipelines.ts");
  return await withTarget(async (target) => {
    const [meant, ...others] = await meantBy(await knownPipelines(target.database), name);
    if (meant === undefined || others.length > 0) {
      const names = [meant, ...others].map((it) => it?.pipeline).join(", ");
      throw new Exit(EXIT.usage, [`${name} is not one pipeline but several: name one of ${names}`]);
    }
    const author = { by: userName(), reason, via: "cli" as const };
    const changed = (await actOnKey(target, action, { pipeline: meant.pipeline, key, author })) ?? [];
    if (output === "json") printJson({ changed });
    else for (const id of changed) process.stdout.write(`${id} ${PAST[action]}\n`);
    if (changed.length > 0) return EXIT.ok;
    process.stderr.write(`key ${key} of ${meant.pipeline} waits for nothing\n`);
    return EXIT.notFound;
  });
}
