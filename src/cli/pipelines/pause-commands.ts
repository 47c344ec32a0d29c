import { userInfo } from "node:os";
import type { Command } from "commander";
import type { KnownPipeline } from "../../operations/pipelines/pipelines.ts";
import type { Database } from "../../postgres/pool.ts";
import { type End, EXIT, Exit } from "../../service/exit.ts";
import { type Form, printJson } from "../terminal/output.ts";

interface PauseFlags {
  readonly all?: boolean;
  readonly destination?: string;
  readonly reason?: string;
  readonly handOver?: boolean;
  readonly output: Form;
}

/** `outbox-relay pause` and `outbox-relay resume`. */
export function addPauseCommands(program: Command, end: End): void {
  program
    .command("pause")
    .description("pause delivery of a pipeline, a source or a schema; events in flight are finished")
    .argument("[name]", "a pipeline, a source like schema.table, or a schema; `outbox-relay status` lists them")
    .option("--all", "every pipeline")
    .option("--destination <name>", "all pipelines of this destination, including later ones")
    .option("--reason <text>", "reason, for the audit log and the console")
    .option("--hand-over", "release the lanes too, so that another deployment on the table takes over")
    .action(async (name: string | undefined, flags: PauseFlags) => {
      end(await changeAll("pause", name, flags));
    });
  program
    .command("resume")
    .description("resume a paused pipeline, source or schema")
    .argument("[name]", "a pipeline, a source like schema.table, or a schema")
    .option("--all", "every pipeline")
    .option("--destination <name>", "all pipelines of this destination")
    .action(async (name: string | undefined, flags: PauseFlags) => {
      end(await changeAll("resume", name, flags));
    });
}

async function changeAll(verb: "pause" | "resume", name: string | undefined, flags: PauseFlags): Promise<number> {
  const wanted = [name !== undefined, flags.all === true, flags.destination !== undefined].filter(Boolean).length;
  if (wanted !== 1) {
    const one = "exactly one of these: a pipeline, source or schema name, --destination NAME, or --all";
    throw new Exit(EXIT.usage, [`${verb} needs ${one}`]);
  }
  if (flags.destination !== undefined) return await changeDestination(verb, flags.destination, flags);
  const { withTarget } = await import("../operation-target.ts");
  const { pausePipelines, resumePipelines } = await import("../../operations/pipelines/pause.ts");
  const { knownPipelines } = await import("../../operations/pipelines/pipelines.ts");
  return await withTarget(async ({ database }) => {
    const known = await knownPipelines(database);
    const selected = (name === undefined ? known : await matchingPipelines(known, name)).map(
      ({ pipeline }) => pipeline,
    );
    if (selected.length === 0 && flags.output === "text") {
      process.stderr.write("No pipelines yet: no relay has run here.\n");
    }
    const changes =
      verb === "pause"
        ? await pausePipelines(database, selected, {
            by: userName(),
            reason: flags.reason,
            handsOver: flags.handOver === true,
          })
        : await resumePipelines(database, selected, { by: userName() });
    return printChanges(changes, flags.output, ({ hasChanged }) => changeText(verb, hasChanged, flags));
  });
}

async function changeDestination(verb: "pause" | "resume", destination: string, flags: PauseFlags): Promise<number> {
  if (flags.handOver)
    throw new Exit(EXIT.usage, ["--hand-over does not work with --destination: name a pipeline, or use --all"]);
  const { withTarget } = await import("../operation-target.ts");
  const { pauseDestination, resumeDestination } = await import("../../operations/pipelines/destinations.ts");
  return await withTarget(async ({ database }) => {
    const author = { by: userName(), reason: flags.reason };
    const change = verb === "pause" ? pauseDestination : resumeDestination;
    const changes = await requireDestination(database, destination, await change(database, destination, author));
    return printChanges(changes, flags.output, ({ hasChanged }) => changeText(verb, hasChanged, flags));
  });
}

/** Prints the result for each selected pipeline. */
export function printChanges<Change extends { readonly pipeline: string }>(
  changes: readonly Change[],
  output: Form,
  changeText: (change: Change) => string,
): number {
  if (output === "json") printJson({ pipelines: changes });
  else for (const change of changes) process.stdout.write(`${change.pipeline}: ${changeText(change)}\n`);
  return EXIT.ok;
}

/** The changes of a destination's pipelines; ends the command where no pipeline has this destination. */
export async function requireDestination<T>(database: Database, destination: string, changes: T | null): Promise<T> {
  if (changes !== null) return changes;
  const { knownDestinations } = await import("../../operations/pipelines/destinations.ts");
  const names = (await knownDestinations(database)).map((it) => it.destination).join(", ") || "none yet";
  throw new Exit(EXIT.notFound, [`no pipeline has the destination ${destination}; destinations: ${names}`]);
}

function changeText(verb: "pause" | "resume", hasChanged: boolean, { handOver }: PauseFlags): string {
  if (handOver) return "paused; relays settle what is in flight and release their lanes within seconds";
  if (verb === "pause") return hasChanged ? "paused; relays stop claiming within three seconds" : "was already paused";
  return hasChanged ? "resumed" : "was not paused";
}

/** The pipelines that a name selects: a pipeline, a source or a schema. Ends the command where none match. */
export async function matchingPipelines(
  known: readonly KnownPipeline[],
  name: string,
): Promise<readonly KnownPipeline[]> {
  const { pipelinesMeant } = await import("../../operations/pipelines/pipelines.ts");
  const selected = pipelinesMeant(known, name);
  if (selected.length > 0) return selected;
  const names = known.map(({ pipeline }) => pipeline).join(", ") || "none yet";
  throw new Exit(EXIT.notFound, [`no pipeline, source or schema named ${name}; pipelines: ${names}`]);
}

/** Falls back to the user id: in a container the user can lack a name. */
export function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? "unknown");
  }
}
