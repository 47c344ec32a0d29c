import type { Command } from "commander";
import type { AuditEntry } from "../../operations/audit/audit.ts";
import { type End, EXIT, Exit } from "../../service/exit.ts";
import { type Form, printJson, textTable } from "../terminal/output.ts";

interface AuditFlags {
  readonly actor?: string;
  readonly action?: string;
  readonly target?: string;
  readonly event?: string;
  readonly since?: string;
  readonly until?: string;
  readonly limit: string;
  readonly cursor?: string;
  readonly output: Form;
}

/** `outbox-relay audit`: reads the audit log. */
export function addAuditCommand(program: Command, end: End): void {
  program
    .command("audit")
    .description("list operator actions from the audit log, newest first")
    .option("--actor <name>", "only actions by this user")
    .option("--action <name>", "only this action, such as pause, replay, discard or plan-run")
    .option("--target <name>", "only actions on this pipeline, source, plan or key")
    .option("--event <id>", "only actions on this event")
    .option("--since <time>", "only at or after this time: 2026-01-31, 2026-01-31T12:00 (UTC), or 2h for two hours ago")
    .option("--until <time>", "only before this time")
    .option("--limit <count>", "page size", "50")
    .option("--cursor <text>", "continue after a page, with the cursor that it printed")
    .action(async (flags: AuditFlags) => end(await audit(flags)));
}

async function audit(flags: AuditFlags): Promise<number> {
  const { action, actor, cursor, event, limit, output, since, target, until } = flags;
  if (!/^[1-9]\d{0,3}$/.test(limit))
    throw new Exit(EXIT.usage, [`--limit is ${JSON.stringify(limit)}: write a number from 1 to 9999`]);
  const { withTarget } = await import("../operation-target.ts");
  const { AUDIT_ACTIONS, listAudit } = await import("../../operations/audit/audit.ts");
  if (action !== undefined && !AUDIT_ACTIONS.some((known) => known === action)) {
    throw new Exit(EXIT.usage, [`--action is ${JSON.stringify(action)}: write one of ${AUDIT_ACTIONS.join(", ")}`]);
  }
  return await withTarget(async ({ database }) => {
    const filter = { action, actor, eventId: event, since, target, until };
    const page = await listAudit(database, filter, { limit: Number(limit), cursor });
    if (output === "json") printJson(page);
    else process.stdout.write(pageText(page.entries, page.cursor));
    return EXIT.ok;
  });
}

function pageText(entries: readonly AuditEntry[], cursor: string | null): string {
  if (entries.length === 0) return "No audit entries match.\n";
  const rows = entries.map(({ action, actor, at, eventId, reason, target, via }) =>
    [at, actor, via, action, target ?? "-", eventId ?? "-", reason ?? "-"].map(oneLine),
  );
  const more = cursor === null ? "" : `\nNext page: --cursor ${cursor}\n`;
  return `${textTable(["AT", "WHO", "VIA", "DID", "TO", "EVENT", "WHY"], rows)}${more}`;
}

const CELL_MAX = 100;

/** One line without control characters: texts that users wrote must not control the terminal. */
function oneLine(text: string): string {
  const line = text.replaceAll(/[\p{Cc}\p{Cf}\s]+/gu, " ");
  return line.length <= CELL_MAX ? line : `${line.slice(0, CELL_MAX - 1)}…`;
}
