import { type Command, Option } from "commander";
import type { AuditEntry } from "../operations/audit.ts";
import { type End, EXIT, Exit } from "./exit.ts";
import { textTable } from "./text-table.ts";

interface AuditFlags {
  readonly actor?: string;
  readonly action?: string;
  readonly target?: string;
  readonly event?: string;
  readonly limit: string;
  readonly cursor?: string;
  readonly output: "text" | "json";
}

export function addAuditCommand(program: Command, end: End): void {
  program
    .command("audit")
    .description("who did what, when and why, the last first")
    .option("--actor <name>", "only what this one did")
    .option("--action <name>", "only this, such as pause, replay, discard or plan-run")
    .option("--target <name>", "only what was done to this pipeline, source, plan or key")
    .option("--event <id>", "only what was done to this event")
    .option("--limit <count>", "at most so many", "50")
    .option("--cursor <text>", "go on where the answer before ended")
    .addOption(new Option("-o, --output <form>").choices(["text", "json"]).default("text"))
    .action(async (flags: AuditFlags) => end(await audit(flags)));
}

async function audit({ action, actor, cursor, event, limit, output, target }: AuditFlags): Promise<number> {
  if (!/^[1-9]\d{0,3}$/.test(limit)) throw new Exit(EXIT.usage, [`--limit ${limit} is no number from 1 to 9999`]);
  const { withTarget } = await import("./operation-target.ts");
  const { AUDIT_ACTIONS, listAudit } = await import("../operations/audit.ts");
  if (action !== undefined && !AUDIT_ACTIONS.some((known) => known === action)) {
    throw new Exit(EXIT.usage, [`--action ${action} is none of ${AUDIT_ACTIONS.join(", ")}`]);
  }
  return await withTarget(async ({ database }) => {
    const filter = { action, actor, eventId: event, target };
    const page = await listAudit(database, filter, { limit: Number(limit), cursor });
    process.stdout.write(
      output === "json" ? `${JSON.stringify(page, null, 2)}\n` : pageText(page.entries, page.cursor),
    );
    return EXIT.ok;
  });
}

function pageText(entries: readonly AuditEntry[], cursor: string | null): string {
  if (entries.length === 0) return "Nothing was noted that fits.\n";
  const rows = entries.map(({ action, actor, at, eventId, reason, target, via }) =>
    [at, actor, via, action, target ?? "-", eventId ?? "-", reason ?? "-"].map(oneLine),
  );
  const more = cursor === null ? "" : `\nMore: --cursor ${cursor}\n`;
  return `${textTable(["AT", "WHO", "VIA", "DID", "TO", "EVENT", "WHY"], rows)}${more}`;
}

const CELL_MAX = 100;

/** What people wrote may hold anything: nothing of it may steer the terminal. */
function oneLine(text: string): string {
  const line = text.replaceAll(/[\p{Cc}\p{Cf}\s]+/gu, " ");
  return line.length <= CELL_MAX ? line : `${line.slice(0, CELL_MAX - 1)}…`;
}
