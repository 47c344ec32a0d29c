import type { Command } from "commander";
import type { ListedLog } from "../../operations/logs/log-list.ts";
import { COUNTED_MAX, type SeekTarget } from "../../operations/logs/log-place.ts";
import type { ResetPlan } from "../../operations/logs/log-reset.ts";
import type { SeekPlan } from "../../operations/logs/log-seek.ts";
import type { KnownPipeline } from "../../operations/pipelines/pipelines.ts";
import { type End, EXIT, Exit } from "../../service/exit.ts";
import { countBar } from "../../service/progress.ts";
import { durationMs } from "../terminal/duration.ts";
import { ageText, type Form, printJson, textTable } from "../terminal/output.ts";
import { matchingPipelines, userName } from "./pause-commands.ts";

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

/** `outbox-relay log list|seek|reset`. */
export function addLogCommands(program: Command, end: End): void {
  const log = program.command("log").description("inspect the readers of logs, and move their position");
  log
    .command("list", { isDefault: true })
    .description("list position, lag, parked events, slot and retention of each reader")
    .argument("[name]", "only this pipeline, source or schema")
    .action(async (name: string | undefined, { output }: { output: Form }) => {
      end(await list(name, output));
    });
  const change = (name: string, description: string) =>
    log
      .command(name)
      .description(`${description}; previews the change; --yes applies it`)
      .argument("<pipeline>", "pipeline name from `outbox-relay log list`")
      .option("--yes", "apply the change")
      .option("--reason <text>", "reason, for the audit log")
      .option("--timeout <time>", "how long to wait for instances to release their lanes", "60s");
  change("seek", "continue at another position")
    .requiredOption("--to <place>", "beginning, now, or a time such as 2026-05-01T00:00:00Z")
    .option("--drop-parked", "also discard the parked events")
    .action(async (pipeline: string, flags: SeekFlags) => {
      end(await seek(pipeline, flags));
    });
  change("reset", "delete a reader's progress, as if it had never read").action(
    async (pipeline: string, flags: ChangeFlags) => {
      end(await reset(pipeline, flags));
    },
  );
}

async function list(name: string | undefined, output: Form): Promise<number> {
  const { withTarget } = await import("../operation-target.ts");
  const { listLogs } = await import("../../operations/logs/log-list.ts");
  const { loadSettings } = await import("../../config/load-config.ts");
  const { configSources } = await import("../config-sources.ts");
  const { settings } = await loadSettings(configSources());
  return await withTarget(async (target) => {
    const logs = await listLogs(target, settings.RETENTION ?? null);
    const selected =
      name === undefined ? null : new Set((await matchingLogs(target, name)).map(({ pipeline }) => pipeline));
    const shown = logs.filter(({ pipeline }) => selected?.has(pipeline) ?? true);
    if (output === "json") printJson(shown);
    else process.stdout.write(logsText(shown));
    return EXIT.ok;
  });
}

function logsText(logs: readonly ListedLog[]): string {
  if (logs.length === 0) return "No logs are read here.\n";
  const head = ["PIPELINE", "KIND", "LANES", "LAG", "OLDEST", "PARKED", "POSITION"];
  const rows = logs.map((log) => [
    log.pipeline,
    log.kind,
    log.lanes.length,
    log.lag === null ? "?" : `${log.isEstimate ? ">" : ""}${log.lag}`,
    log.oldestAgeMs === null ? "-" : ageText(log.oldestAgeMs),
    log.parked,
    positionsText(log),
  ]);
  return textTable(head, rows) + logs.flatMap(remarksOf).join("");
}

/** Usually all lanes have the same position; otherwise each distinct one is shown. */
function positionsText({ lanes }: ListedLog): string {
  const texts = [
    ...new Set(lanes.map(({ position }) => (position === null ? "not started" : JSON.stringify(position)))),
  ];
  return texts.length === 0 ? "not started" : texts.join(" | ");
}

function remarksOf({ countProblem, isPaused, pipeline, retentionWaits, slot }: ListedLog): string[] {
  const kept = slot?.retainedBytes == null ? "nothing" : `${Math.round(slot.retainedBytes / 1024 / 1024)} MiB`;
  return [
    ...(isPaused ? [`${pipeline} is paused\n`] : []),
    ...(countProblem === null ? [] : [`${pipeline} cannot be counted: ${countProblem}\n`]),
    ...(slot === null ? [] : [`${pipeline}: slot ${slot.name} is ${slot.status}, the server retains ${kept} for it\n`]),
    ...(retentionWaits === null ? [] : [`${pipeline} keeps ${retentionWaits} from being dropped by RETENTION\n`]),
  ];
}

async function seek(name: string, flags: SeekFlags): Promise<number> {
  const to = await seekTargetOf(flags.to);
  const { withTarget } = await import("../operation-target.ts");
  const { planSeek, seekLog } = await import("../../operations/logs/log-seek.ts");
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
  const { withTarget } = await import("../operation-target.ts");
  const { planReset, resetLog } = await import("../../operations/logs/log-reset.ts");
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
      ? "the number of events in between is unknown"
      : `${many(plan.again)} events are sent again, ${many(plan.skipped)} are skipped`;
  const parked =
    plan.parked === 0 ? "" : `; ${plan.parked} parked events ${dropParked ? "are discarded" : "stay and are retried"}`;
  return `${plan.pipeline}: continues at ${JSON.stringify(plan.position)}: ${effect}${parked}\n${isDoneText(yes)}`;
}

function resetText({ parked, pipeline, slot }: ResetPlan, { yes }: ChangeFlags): string {
  const dropped = slot === null ? "" : `, the slot ${slot} is dropped`;
  return `${pipeline}: its progress and ${parked} parked events are deleted${dropped}\n${isDoneText(yes)}`;
}

function isDoneText(yes: boolean | undefined): string {
  return yes ? "done\n" : "Nothing was changed. Add --yes to apply it.\n";
}

/** The author and timeout of a change, with a bar that shows how lanes are released. */
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

async function seekTargetOf(written: string): Promise<SeekTarget> {
  const { logStart } = await import("../../config/sources/log-start.ts");
  const problems: string[] = [];
  const found = logStart(written, (why) => problems.push(`--to ${why}`));
  if (found === undefined) throw new Exit(EXIT.usage, problems);
  return found;
}

type Target = Parameters<typeof import("../../operations/logs/log-list.ts").listLogs>[0];

async function matchingLogs({ database }: Target, name: string): Promise<readonly KnownPipeline[]> {
  const { knownPipelines } = await import("../../operations/pipelines/pipelines.ts");
  return await matchingPipelines(await knownPipelines(database), name);
}

async function oneLog(target: Target, name: string): Promise<KnownPipeline> {
  const [pipeline, ...others] = await matchingLogs(target, name);
  if (pipeline !== undefined && others.length === 0) return pipeline;
  const names = [pipeline, ...others].map((it) => it?.pipeline).join(", ");
  throw new Exit(EXIT.usage, [`${name} matches several pipelines: name one of ${names}`]);
}
