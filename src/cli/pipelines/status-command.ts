import type { Command } from "commander";
import type { Status } from "../../operations/pipelines/status.ts";
import { type End, EXIT } from "../../service/exit.ts";
import { ageText, type Form, textTable } from "../terminal/output.ts";
import { paint } from "../terminal/plain-text.ts";

interface StatusOptions {
  readonly output: Form;
  readonly watch?: boolean;
}

const WATCH_EVERY_MS = 2_000;

/** `outbox-relay status`. */
export function addStatusCommand(program: Command, end: End): void {
  program
    .command("status")
    .description("show pipelines, lanes, instances and backlog from the database alone: 0 healthy, 3 not healthy")
    .option("--watch", "refresh every two seconds until Ctrl-C")
    .action(async (options: StatusOptions) => {
      const { withTarget } = await import("../operation-target.ts");
      const { readStatus } = await import("../../operations/pipelines/status.ts");
      end(
        await withTarget(async (target) => {
          for (;;) {
            const status = await readStatus(target);
            show(status, options);
            if (!options.watch) return status.problems.length > 0 ? EXIT.unhealthy : EXIT.ok;
            await new Promise((resolve) => setTimeout(resolve, WATCH_EVERY_MS));
          }
        }),
      );
    });
}

function show(status: Status, { output, watch = false }: StatusOptions): void {
  if (output === "json") {
    process.stdout.write(`${JSON.stringify(status, null, watch ? 0 : 2)}\n`);
    return;
  }
  if (watch && process.stdout.isTTY) process.stdout.write("\u001b[H\u001b[2J");
  process.stdout.write(statusText(status));
}

function statusText(status: Status): string {
  const { causes, grade, instances, pipelines, problems, relaySchema, schemaVersion, unrouted } = status;
  const rows = pipelines.map((it) => [
    it.pipeline,
    it.state,
    it.delivery,
    `${it.ownedLanes} owned, ${it.freeLanes} free`,
    countText(it.pending, it.isEstimate),
    it.oldestAgeMs === null ? "-" : ageText(it.oldestAgeMs),
    it.retrying,
    it.parkedKeys,
    it.deadLetters,
    countText(it.behindDeadLetters, it.isEstimate),
  ]);
  const unroutedRows = unrouted.map(({ events, isEstimate, oldestAgeMs, source }) => [
    ...[source, "unrouted", "-", "-", countText(events, isEstimate)],
    ...[oldestAgeMs === null ? "-" : ageText(oldestAgeMs), "-", "-", "-", "-"],
  ]);
  const head = [
    ...["PIPELINE", "STATE", "DELIVERY", "LANES", "PENDING", "OLDEST"],
    ...["RETRYING", "PARKED KEYS", "DEAD", "BEHIND DEAD"],
  ];
  const living = instances.map(({ id, lanes, leaseRemainingMs, name }) => [name, id, lanes, ageText(leaseRemainingMs)]);
  const pauses = pipelines.flatMap(({ pause, pipeline }) =>
    pause === null ? [] : [`${pipeline} was paused by ${pause.by} at ${pause.at}${whyText(pause.reason)}\n`],
  );
  const limits = pipelines.flatMap(({ limit, pipeline }) =>
    limit === null
      ? []
      : [`${pipeline} is limited to ${limit.perSecond}/s for each relay by ${limit.by}${whyText(limit.reason)}\n`],
  );
  return [
    pipelines.length === 0 ? "No pipelines yet: no relay has run here.\n" : textTable(head, [...rows, ...unroutedRows]),
    "\n",
    instances.length === 0 ? "No live instances.\n" : textTable(["INSTANCE", "ID", "LANES", "LEASE LEFT"], living),
    `\nSchema ${relaySchema}, version ${schemaVersion}\nHealth, from the database alone: ${grade}\n`,
    ...pauses,
    ...limits,
    ...problems.map((problem) => `${paint("yellow", "!")} ${problem}\n`),
    // Only causes that the other lines do not show.
    ...causes.filter(({ code }) => code === "keys-parked").map(({ what }) => `${paint("yellow", "!")} ${what}\n`),
  ].join("");
}

function countText(count: number | null, isEstimate: boolean): string {
  return count === null ? "?" : `${isEstimate ? "about " : ""}${count}`;
}

function whyText(reason: string | null): string {
  return reason === null ? "" : `: ${reason}`;
}
