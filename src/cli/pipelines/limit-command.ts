import type { Command } from "commander";
import type { Author } from "../../operations/audit/author.ts";
import type { Database } from "../../postgres/pool.ts";
import { type End, EXIT, Exit } from "../../service/exit.ts";
import type { Form } from "../terminal/output.ts";
import { matchingPipelines, printChanges, requireDestination, userName } from "./pause-commands.ts";

/** `outbox-relay limit`. */
export function addLimitCommand(program: Command, end: End): void {
  program
    .command("limit")
    .description("limit the events per second that each relay sends for a pipeline, or remove the limit")
    .argument("[name]", "a pipeline, a source like schema.table, or a schema; `outbox-relay status` lists them")
    .argument("[rate]", "events per second, such as 100/s, or off")
    .option("--destination <name>", "all pipelines of this destination, including later ones; replaces the name")
    .option("--reason <text>", "reason, for the audit log")
    .action(async (name: string | undefined, rate: string | undefined, flags: LimitFlags) => {
      end(await limit(wishOf(name, rate, flags), flags));
    });
}

interface LimitFlags {
  readonly destination?: string;
  readonly reason?: string;
  readonly output: Form;
}

interface LimitWish {
  readonly name: string;
  readonly isDestination: boolean;
  readonly perSecond: number | null;
}

/** Parses `limit NAME RATE` and `limit --destination NAME RATE`. */
function wishOf(first: string | undefined, second: string | undefined, { destination }: LimitFlags): LimitWish {
  const isDestination = destination !== undefined;
  const [name, rate, more] = isDestination ? [destination, first, second] : [first, second];
  if (name !== undefined && rate !== undefined && more === undefined) {
    return { name, isDestination, perSecond: perSecondOf(rate) };
  }
  throw new Exit(EXIT.usage, ["limit needs a name and a rate: limit NAME 100/s, or limit --destination NAME 100/s"]);
}

function perSecondOf(rate: string): number | null {
  if (rate === "off") return null;
  const [, number] = /^(\d{1,9}(?:\.\d{1,3})?)(?:\/s)?$/.exec(rate) ?? [];
  if (number !== undefined) return Number(number);
  throw new Exit(EXIT.usage, [`invalid rate ${JSON.stringify(rate)}: write 100/s, or off`]);
}

async function limit({ isDestination, name, perSecond }: LimitWish, flags: LimitFlags): Promise<number> {
  const { withTarget } = await import("../operation-target.ts");
  return await withTarget(async ({ database }) => {
    const author = { by: userName(), reason: flags.reason, via: "cli" } as const;
    const changes = isDestination
      ? await limitAll(database, name, perSecond, author)
      : await limitNamed(database, name, perSecond, author);
    return printChanges(changes, flags.output, ({ hasChanged }) => changeText(perSecond, hasChanged));
  });
}

async function limitAll(database: Database, name: string, perSecond: number | null, author: Author) {
  const { limitDestination } = await import("../../operations/pipelines/destinations.ts");
  return await requireDestination(database, name, await limitDestination(database, name, perSecond, author));
}

async function limitNamed(database: Database, name: string, perSecond: number | null, author: Author) {
  const { limitPipelines } = await import("../../operations/pipelines/limit.ts");
  const { knownPipelines } = await import("../../operations/pipelines/pipelines.ts");
  const selected = (await matchingPipelines(await knownPipelines(database), name)).map(({ pipeline }) => pipeline);
  return await limitPipelines(database, selected, perSecond, author);
}

function changeText(perSecond: number | null, hasChanged: boolean): string {
  if (perSecond === null) return hasChanged ? "limit removed; takes effect within three seconds" : "had no limit";
  const rate = `${perSecond} events per second for each relay`;
  return hasChanged ? `limited to ${rate}; takes effect within three seconds` : `already limited to ${rate}`;
}
