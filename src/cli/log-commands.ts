import { type Command, Option } from "commander";
import type { ListedLog } from "../operations/log-list.ts";
import { COUNTED_MAX, type SeekTarget } from "../operations/log-place.ts";
import type { ResetPlan } from "../operations/log-reset.ts";
import type { SeekPlan } from "../operations/log-seek.ts";
import type { KnownPipeline } from "../operations/pipelines.ts";
import { durationMs } from "./duration.ts";
import { printJson } from "./events-commands.ts";
import { type End, EXIT, Exit } from "./exit.ts";
import { meantBy, userName } from "./pause-commands.ts";
import { countBar } from "./progress.ts";
import { ageText, textTable } from "./text-table.ts";

type Form = "text" | "json";

interface ChangeFlags {
  readonly yes?: boolean;
  readonly reason?: string;
  readonly timeout: string;
  readonly output: Form;
}

interface SeekFlags extends ChangeFlags {
  readonly to: string;
  readonly dropParked?: boolean;
}

export function addLogCommands(program: Command, end: End): void {
  const log = program.command("log").description("the readers of logs: how far they came, and where they go on");
  const form = () => new Option("-o, --output <form>").choices(["text", "json"]).default("text");
  log
    .command("list", { isDefault: true })
    .description("places, lag, parked events, slot and retention of each reader")
    .argument("[name]", "only this pipeline, source or schema")
    .addOption(form())
    .action(async (name: string | undefined, { output }: { output: Form }) => {
      end(await list(name, output));
    });
  const change = (name: string, description: string) =>
    log
      .command(name)
      .description(`${description}; shows what would be done, and does it with --yes`)
      .argument("<pipeline>", "as `outbox-relay log list` names it")
      .option("--yes", "do it")
      .option("--reason <text>", "why, for those who look later")
      .option("--timeout <time>", "how long instances may take to hand their lanes over", "60s")
      .addOption(form());
  change("seek", "go on at another place")
    .requiredOption("--to <place>", "beginning, now, or a time such as 2026-05-01T00:00:00Z")
    .option("--drop-parked", "also give up what was passed and still waits")
    .action(async (pipeline: string, flags: SeekFlags) => {
      end(await seek(pipeline, flags));
    });
  change("reset", "forget a reader's progress as if it had never been there").action(
    async (pipeline: string, flags: ChangeFlags) => {
      end(await reset(pipeline, flags));
    },
  );
}

async function list(name: string | undefined, output: Form): Promise<number> {
  const { withTarget } = await import("./operation-target.ts");
  const { listLogs } = await import("../operations/log-list.ts");
  const { loadSettings } = await import("../config/load-config.ts");
  const { configSources } = await import("./config-sources.ts");
  const { settings } = await loadSettings(configSources());
  return await withTarget(async (target) => {
    const logs = await listLogs(target, settings.RETENTION ?? null);
    const meant = name === undefined ? null : new Set((await logsMeant(target, name)).map(({ pipeline }) => pipeline));
    const shown = logs.filter(({ pipeline }) => meant?.has(pipeline) ?? true);
    if (output === "json") printJson(shown);
    else process.stdout.write(logsText(shown));
    return EXIT.ok;
  });
}

function logsText(logs: readonly ListedLog[]): string {
  if (logs.length === 0) return "No log is read here.\n";
  const head = ["PIPELINE", "KIND", "LANES", "LAG", "OLDEST", "PARKED", "POSITION"];
  const rows = logs.map((log) => [
    log.pipeline,
    log.kind,
    log.lanes.length,
    log.lag === null ? "?" : `${log.isEstimate ? ">" : ""}${log.lag}`,
    log.oldestAgeMs === null ? "-" : ageText(log.oldestAgeMs),
    log.parked,
    placesText(log),
  ]);
  return textTable(head, rows) + logs.flatMap(remarksOf).join("");
}

/** Most lanes stand at the same place; where they do not, each is shown. */
function placesText({ lanes }: ListedLog): string {
  const texts = [
    ...new Set(lanes.map(({ position }) => (position === null ? "never began" : JSON.stringify(position)))),
  ];
  return texts.length === 0 ? "never began" : texts.join(" | ");
}

function remarksOf({ countProblem, isPaused, pipeline, retentionWaits, slot }: ListedLog): string[] {
  const kept = slot?.retainedBytes == null ? "nothing" : `${Math.round(slot.retainedBytes / 1024 / 1024)} MiB`;
  return [
    ...(isPaused ? [`${pipeline} is paused\n`] : []),
    ...(countProblem === null ? [] : [`${pipeline} cannot be counted: ${countProblem}\n`]),
    ...(slot === null ? [] : [`${pipeline}: slot ${slot.name} is ${slot.status}, the server keeps ${kept} for it\n`]),
    ...(retentionWaits === null ? [] : [`${pipeline} keeps ${retentionWaits} from being dropped by RETENTION\n`]),
  ];
}

async function seek(name: string, flags: SeekFlags): Promise<number> {
  const to = await placeOf(flags.to);
  const { withTarget } = await import("./operation-target.ts");
  const { planSeek, seekLog } = await import("../operations/log-seek.ts");
  return await withTarget(async (target) => {
    const known = await oneLog(target, name);
    const options = changeOptions(flags, known);
    const plan = flags.yes
      ? await options.done(() => seekLog(target, known, { ...options, to, dropParked: flags.dropParked ?? false }))
      : await planSeek(target, known, to);
    if (flags.output === "json") printJson({ ...plan, isDone: flags.yes ?? false });
    else process.stdout.write(seekText(plan, flags));
    return EXIT.ok;
  });
}

async function reset(name: string, flags: ChangeFlags): Promise<number> {
  const { withTarget } = await import("./operation-target.ts");
  const { planReset, resetLog } = await import("../operations/log-reset.ts");
  return await withTarget(async (target) => {
    const known = await oneLog(target, name);
    const options = changeOptions(flags, known);
    const plan = flags.yes
      ? await options.done(() => resetLog(target, known, options))
      : await planReset(target, known);
    if (flags.output === "json") printJson({ ...plan, isDone: flags.yes ?? false });
    else process.stdout.write(resetText(plan, flags));
    return EXIT.ok;
  });
}

function seekText(plan: SeekPlan, { dropParked, yes }: SeekFlags): string {
  const many = (count: number) => (count > COUNTED_MAX ? `more than ${COUNTED_MAX}` : String(count));
  const effect =
    plan.again === null || plan.skipped === null
      ? "nobody can count what lies in between"
      : `${many(plan.again)} events are sent again, ${many(plan.skipped)} are left out`;
  const parked =
    plan.parked === 0 ? "" : `; ${plan.parked} parked ones ${dropParked ? "are given up" : "stay and are tried on"}`;
  return `${plan.pipeline}: goes on at ${JSON.stringify(plan.position)}: ${effect}${parked}\n${isDoneText(yes)}`;
}

function resetText({ parked, pipeline, slot }: ResetPlan, { yes }: ChangeFlags): string {
  const dropped = slot === null ? "" : `, the slot ${slot} is dropped`;
  return `${pipeline}: its progress is forgotten with ${parked} parked events${dropped}\n${isDoneText(yes)}`;
}

function isDoneText(yes: boolean | undefined): string {
  return yes ? "done\n" : "Nothing was changed: add --yes to do it.\n";
}

/** A person's word, and the bar that shows how lanes are handed over. */
function changeOptions({ reason, timeout }: ChangeFlags, { lanes }: KnownPipeline) {
  const bar = countBar(process.stderr);
  return {
    author: { by: userName(), reason },
    timeoutMs: durationMs("--timeout", timeout),
    onWait: (owned: number) => bar.show(lanes - owned, lanes),
    done: async <T>(work: () => Promise<T>): Promise<T> => {
      try {
        return await work();
      } finally {
        bar.end();
      }
    },
  };
}

async function placeOf(written: string): Promise<SeekTarget> {
  const { logStart } = await import("../config/log-start.ts");
  const problems: string[] = [];
  const found = logStart(written, (why) => problems.push(`--to ${why}`));
  if (found === undefined) throw new Exit(EXIT.usage, problems);
  return found;
}

type Target = Parameters<typeof import("../operations/log-list.ts").listLogs>[0];

async function logsMeant({ database }: Target, name: string): Promise<readonly KnownPipeline[]> {
  const { knownPipelines } = await import("../operations/pipelines.ts");
  return await meantBy(await knownPipelines(database), name);
}

async function oneLog(target: Target, name: string): Promise<KnownPipeline> {
  const [pipeline, ...others] = await logsMeant(target, name);
  if (pipeline !== undefined && others.length === 0) return pipeline;
  const names = [pipeline, ...others].map((it) => it?.pipeline).join(", ");
  throw new Exit(EXIT.usage, [`${name} is not one pipeline but several: name one of ${names}`]);
}
