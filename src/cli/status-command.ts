import { type Command, Option } from "commander";
import type { Status } from "../operations/status.ts";
import { type End, EXIT } from "./exit.ts";
import { ageText, textTable } from "./text-table.ts";

interface StatusOptions {
  readonly output: "text" | "json";
  readonly watch?: boolean;
}

const WATCH_EVERY_MS = 2_000;

export function addStatusCommand(program: Command, end: End): void {
  program
    .command("status")
    .description("pipelines, lanes, instances and what waits, by the database alone: 0 all is well, 3 something is not")
    .addOption(new Option("-o, --output <form>").choices(["text", "json"]).default("text"))
    .option("--watch", "show it again every two seconds until Ctrl-C")
    .action(async (options: StatusOptions) => {
      const { withTarget } = await import("./operation-target.ts");
      const { readStatus } = await import("../operations/status.ts");
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

function statusText({ instances, pipelines, problems, relaySchema, schemaVersion }: Status): string {
  const rows = pipelines.map((it) => [
    it.pipeline,
    it.state,
    it.delivery,
    `${it.ownedLanes} owned, ${it.freeLanes} free`,
    it.pending === null ? "?" : `${it.isEstimate ? "about " : ""}${it.pending}`,
    it.oldestAgeMs === null ? "-" : ageText(it.oldestAgeMs),
    it.retrying,
    it.parkedKeys,
    it.deadLetters,
  ]);
  const head = ["PIPELINE", "STATE", "DELIVERY", "LANES", "PENDING", "OLDEST", "RETRYING", "PARKED KEYS", "DEAD"];
  const living = instances.map(({ id, lanes, leaseRemainingMs, name }) => [name, id, lanes, ageText(leaseRemainingMs)]);
  const pauses = pipelines.flatMap(({ pause, pipeline }) =>
    pause === null ? [] : [`${pipeline} is paused since ${pause.at} by ${pause.by}${whyText(pause.reason)}\n`],
  );
  const limits = pipelines.flatMap(({ limit, pipeline }) =>
    limit === null
      ? []
      : [`${pipeline} is limited to ${limit.perSecond}/s for each relay by ${limit.by}${whyText(limit.reason)}\n`],
  );
  return [
    pipelines.length === 0 ? "No pipeline yet: no relay has run here.\n" : textTable(head, rows),
    "\n",
    instances.length === 0 ? "No living instance.\n" : textTable(["INSTANCE", "ID", "LANES", "LEASE LEFT"], living),
    `\nSchema ${relaySchema}, version ${schemaVersion}\n`,
    ...pauses,
    ...limits,
    ...problems.map((problem) => `! ${problem}\n`),
  ].join("");
}

function whyText(reason: string | null): string {
  return reason === null ? "" : `: ${reason}`;
}
