import { userInfo } from "node:os";
import type { Command } from "commander";
import type { KnownPipeline } from "../operations/pipelines.ts";
import { type End, EXIT, Exit } from "./exit.ts";

interface PauseFlags {
  readonly all?: boolean;
  readonly reason?: string;
  readonly handOver?: boolean;
}

export function addPauseCommands(program: Command, end: End): void {
  program
    .command("pause")
    .description("stop the delivery of a pipeline, a source or a schema; what is in flight is finished")
    .argument("[name]", "a pipeline, a source like schema.table, or a schema; `outbox-relay status` lists them")
    .option("--all", "every pipeline")
    .option("--reason <text>", "for the others who see it")
    .option("--hand-over", "release the lanes too, so that another deployment on the table takes over")
    .action(async (name: string | undefined, flags: PauseFlags) => {
      end(await changeAll("pause", name, flags));
    });
  program
    .command("resume")
    .description("let a paused pipeline, source or schema go on")
    .argument("[name]", "a pipeline, a source like schema.table, or a schema")
    .option("--all", "every pipeline")
    .action(async (name: string | undefined, flags: PauseFlags) => {
      end(await changeAll("resume", name, flags));
    });
}

async function changeAll(verb: "pause" | "resume", name: string | undefined, flags: PauseFlags): Promise<number> {
  if ((name === undefined) === !flags.all) {
    throw new Exit(EXIT.usage, [`${verb} needs the name of a pipeline, a source or a schema, or --all, and not both`]);
  }
  const { withTarget } = await import("./operation-target.ts");
  const { pausePipelines, resumePipelines } = await import("../operations/pause.ts");
  const { knownPipelines } = await import("../operations/pipelines.ts");
  return await withTarget(async ({ database }) => {
    const known = await knownPipelines(database);
    const meant = (name === undefined ? known : await meantBy(known, name)).map(({ pipeline }) => pipeline);
    if (meant.length === 0) process.stderr.write("There is no pipeline yet: no relay has run here.\n");
    const changes =
      verb === "pause"
        ? await pausePipelines(database, meant, {
            by: userName(),
            reason: flags.reason,
            handsOver: flags.handOver === true,
          })
        : await resumePipelines(database, meant, { by: userName() });
    for (const { pipeline, hasChanged } of changes)
      process.stdout.write(`${pipeline}: ${toldAs(verb, hasChanged, flags)}\n`);
    return EXIT.ok;
  });
}

function toldAs(verb: "pause" | "resume", hasChanged: boolean, { handOver }: PauseFlags): string {
  if (handOver) return "paused; relays settle what is in flight and release their lanes within seconds";
  if (verb === "pause") return hasChanged ? "paused; relays stop claiming within three seconds" : "was paused already";
  return hasChanged ? "resumed" : "was not paused";
}

export async function meantBy(known: readonly KnownPipeline[], name: string): Promise<readonly KnownPipeline[]> {
  const { pipelinesMeant } = await import("../operations/pipelines.ts");
  const meant = pipelinesMeant(known, name);
  if (meant.length > 0) return meant;
  const names = known.map(({ pipeline }) => pipeline).join(", ") || "none yet";
  throw new Exit(EXIT.notFound, [`There is no pipeline, source or schema ${name}. Pipelines here: ${names}.`]);
}

/** In a container there may be no name for the user. */
export function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? "somebody");
  }
}
