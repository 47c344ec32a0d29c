import type { Command } from "commander";
import { type End, EXIT, Exit } from "./exit.ts";
import { meantBy, userName } from "./pause-commands.ts";

export function addLimitCommand(program: Command, end: End): void {
  program
    .command("limit")
    .description("let each relay send so many events a second at most, or as many as it can again")
    .argument("<name>", "a pipeline, a source like schema.table, or a schema; `outbox-relay status` lists them")
    .argument("<rate>", "events a second, as 100/s, or off")
    .option("--reason <text>", "for the others who see it")
    .action(async (name: string, rate: string, flags: { reason?: string }) => {
      end(await limit(name, perSecondOf(rate), flags.reason));
    });
}

function perSecondOf(rate: string): number | null {
  if (rate === "off") return null;
  const [, number] = /^(\d{1,9}(?:\.\d{1,3})?)(?:\/s)?$/.exec(rate) ?? [];
  if (number !== undefined) return Number(number);
  throw new Exit(EXIT.usage, [`${JSON.stringify(rate)} is no rate: write 100/s, or off`]);
}

async function limit(name: string, perSecond: number | null, reason: string | undefined): Promise<number> {
  const { withTarget } = await import("./operation-target.ts");
  const { limitPipelines } = await import("../operations/limit.ts");
  const { knownPipelines } = await import("../operations/pipelines.ts");
  return await withTarget(async ({ database }) => {
    const meant = (await meantBy(await knownPipelines(database), name)).map(({ pipeline }) => pipeline);
    const changes = await limitPipelines(database, meant, perSecond, { by: userName(), reason, via: "cli" });
    for (const { pipeline, hasChanged } of changes)
      process.stdout.write(`${pipeline}: ${toldAs(perSecond, hasChanged)}\n`);
    return EXIT.ok;
  });
}

function toldAs(perSecond: number | null, hasChanged: boolean): string {
  if (perSecond === null) return hasChanged ? "no limit any more, within three seconds" : "had no limit";
  const rate = `${perSecond} events a second for each relay`;
  return hasChanged ? `at most ${rate}, within three seconds` : `had a limit of ${rate} already`;
}
