import { type Command, Option } from "commander";
import type { ListedLane } from "../operations/lane-list.ts";
import { durationMs } from "./duration.ts";
import { type End, EXIT, Exit } from "./exit.ts";
import { meantBy, userName } from "./pause-commands.ts";
import { countBar } from "./progress.ts";
import { textTable } from "./text-table.ts";

export function addLanesCommands(program: Command, end: End): void {
  const lanes = program.command("lanes").description("the lanes of each pipeline: who owns them, how far they are");
  lanes
    .command("list", { isDefault: true })
    .description("owner, epoch, last settled batch, crashes and deliveries of each lane")
    .argument("[name]", "only this pipeline, source or schema")
    .addOption(new Option("-o, --output <form>").choices(["text", "json"]).default("text"))
    .action(async (name: string | undefined, { output }: { output: "text" | "json" }) => {
      end(await list(name, output));
    });
  lanes
    .command("set")
    .description("give a paused pipeline another number of lanes")
    .argument("<pipeline>", "as `outbox-relay status` names it")
    .argument("<number>", "from 1 to 1024")
    .option("--timeout <time>", "how long instances may take to hand their lanes over", "60s")
    .action(async (pipeline: string, number: string, { timeout }: { timeout: string }) => {
      end(await set(pipeline, number, durationMs("--timeout", timeout)));
    });
}

async function list(name: string | undefined, output: "text" | "json"): Promise<number> {
  const { withTarget } = await import("./operation-target.ts");
  const { listLanes } = await import("../operations/lane-list.ts");
  const { knownPipelines } = await import("../operations/pipelines.ts");
  return await withTarget(async ({ database }) => {
    const known = await knownPipelines(database);
    const meant = new Set((name === undefined ? known : await meantBy(known, name)).map(({ pipeline }) => pipeline));
    const shown = (await listLanes(database)).filter(({ pipeline }) => meant.has(pipeline));
    process.stdout.write(output === "json" ? `${JSON.stringify(shown, null, 2)}\n` : lanesText(shown));
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

async function set(name: string, number: string, timeoutMs: number): Promise<number> {
  if (!/^\d{1,4}$/.test(number))
    throw new Exit(EXIT.usage, [`${number} is no number of lanes: write one from 1 to 1024`]);
  const { withTarget } = await import("./operation-target.ts");
  const { changeLaneCount } = await import("../operations/lane-count.ts");
  const { knownPipelines } = await import("../operations/pipelines.ts");
  return await withTarget(async (target) => {
    const meant = await meantBy(await knownPipelines(target.database), name);
    const [pipeline] = meant;
    if (pipeline === undefined || meant.length > 1) {
      const names = meant.map(({ pipeline }) => pipeline).join(", ");
      throw new Exit(EXIT.usage, [`${name} is not one pipeline but several: name one of ${names}`]);
    }
    const bar = countBar(process.stderr);
    try {
      const onWait = (owned: number) => bar.show(pipeline.lanes - owned, pipeline.lanes);
      const options = { timeoutMs, onWait, author: { by: userName() } };
      const { before, after } = await changeLaneCount(target, pipeline, Number(number), options);
      process.stdout.write(
        before === after
          ? `${pipeline.pipeline}: has ${after} lanes already\n`
          : `${pipeline.pipeline}: ${after} lanes instead of ${before}; it is still paused\n`,
      );
      return EXIT.ok;
    } finally {
      bar.end();
    }
  });
}
