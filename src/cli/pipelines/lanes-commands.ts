import type { Command } from "commander";
import { plural } from "../../core/plural.ts";
import type { ListedLane } from "../../operations/pipelines/lane-list.ts";
import { type End, EXIT, Exit } from "../../service/exit.ts";
import { countBar } from "../../service/progress.ts";
import { durationMs } from "../terminal/duration.ts";
import { type Form, printJson, textTable } from "../terminal/output.ts";
import { matchingPipelines, userName } from "./pause-commands.ts";

interface SetFlags {
  readonly timeout: string;
  readonly output: Form;
}

/** `outbox-relay lanes list|set`. */
export function addLanesCommands(program: Command, end: End): void {
  const lanes = program.command("lanes").description("inspect lanes and their owners, or change their number");
  lanes
    .command("list", { isDefault: true })
    .description("list owner, epoch, last settled batch, crashes and deliveries of each lane")
    .argument("[name]", "only this pipeline, source or schema")
    .action(async (name: string | undefined, { output }: { output: Form }) => {
      end(await list(name, output));
    });
  lanes
    .command("set")
    .description("change the number of lanes of a paused pipeline")
    .argument("<pipeline>", "pipeline name from `outbox-relay status`")
    .argument("<number>", "number of lanes, from 1 to 1024")
    .option("--timeout <time>", "how long to wait for instances to release their lanes", "60s")
    .action(async (pipeline: string, number: string, { output, timeout }: SetFlags) => {
      end(await set(pipeline, number, durationMs("--timeout", timeout), output));
    });
}

async function list(name: string | undefined, output: Form): Promise<number> {
  const { withTarget } = await import("../operation-target.ts");
  const { listLanes } = await import("../../operations/pipelines/lane-list.ts");
  const { knownPipelines } = await import("../../operations/pipelines/pipelines.ts");
  return await withTarget(async ({ database }) => {
    const known = await knownPipelines(database);
    const selected = new Set(
      (name === undefined ? known : await matchingPipelines(known, name)).map(({ pipeline }) => pipeline),
    );
    const shown = (await listLanes(database)).filter(({ pipeline }) => selected.has(pipeline));
    if (output === "json") printJson(shown);
    else process.stdout.write(lanesText(shown));
    return EXIT.ok;
  });
}

function lanesText(lanes: readonly ListedLane[]): string {
  const head = ["PIPELINE", "LANE", "OWNER", "EPOCH", "BATCH", "CRASHES", "PUBLISHED", "LAST SETTLED"];
  return textTable(
    head,
    lanes.map((it) => [
      it.pipeline,
      it.lane,
      it.owner === null ? "-" : `${it.owner.name ?? it.owner.id}${it.owner.isAlive ? "" : " (dead)"}`,
      it.epoch,
      it.settledBatch,
      it.crashes,
      it.published,
      it.settledAt ?? "-",
    ]),
  );
}

async function set(name: string, number: string, timeoutMs: number, output: Form): Promise<number> {
  if (!/^\d{1,4}$/.test(number))
    throw new Exit(EXIT.usage, [`invalid number of lanes ${number}: write a number from 1 to 1024`]);
  const { withTarget } = await import("../operation-target.ts");
  const { changeLaneCount } = await import("../../operations/pipelines/lane-count.ts");
  const { knownPipelines } = await import("../../operations/pipelines/pipelines.ts");
  return await withTarget(async (target) => {
    const selected = await matchingPipelines(await knownPipelines(target.database), name);
    const [pipeline] = selected;
    if (pipeline === undefined || selected.length > 1) {
      const names = selected.map(({ pipeline }) => pipeline).join(", ");
      throw new Exit(EXIT.usage, [`${name} matches several pipelines: name one of ${names}`]);
    }
    const bar = countBar(process.stderr);
    try {
      const onWait = (owned: number) => bar.show(pipeline.lanes - owned, pipeline.lanes);
      const options = { timeoutMs, onWait, author: { by: userName() } };
      const { before, after } = await changeLaneCount(target, pipeline, Number(number), options);
      if (output === "json") printJson({ pipeline: pipeline.pipeline, before, after });
      else
        process.stdout.write(
          before === after
            ? `${pipeline.pipeline}: already has ${plural(after, "lane")}\n`
            : `${pipeline.pipeline}: ${plural(after, "lane")} instead of ${before}; it is still paused\n`,
        );
      return EXIT.ok;
    } finally {
      bar.end();
    }
  });
}
