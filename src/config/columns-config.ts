import type { ColumnNames } from "../postgres/column-names.ts";
import { nearestName } from "../routing/nearest-name.ts";

/** What an event consists of, by the words that OUTBOX_COLUMNS uses for it. */
const ROLES = [
  "id",
  "type",
  "key",
  "payload",
  "headers",
  "correlationId",
  "createdAt",
  "order",
  "xid",
  "flags",
  "status",
  "nextAttemptAt",
  "attempts",
  "lastError",
] as const satisfies readonly (keyof ColumnNames)[];

const REQUIRED: ReadonlySet<string> = new Set(["id", "type", "payload", "order", "flags"]);

/**
 * `key=none` says that the table has no such column although one of the usual names is there. In a log one rather says
 * `position` for what is the order in a queue.
 */
export function columnsConfig(written: Readonly<Record<string, string>> | undefined, problems: string[]): ColumnNames {
  const entries = Object.entries(written ?? {}).map(([role, column]): [string, unknown] => {
    if (role === "position") return ["order", column];
    if (!(ROLES as readonly string[]).includes(role)) {
      const nearest = nearestName(role, ROLES);
      const hint = nearest === undefined ? "" : `, did you mean ${nearest}?`;
      problems.push(
        `OUTBOX_COLUMNS has the unknown word ${JSON.stringify(role)}${hint} (known are ${ROLES.join(", ")})`,
      );
    }
    if (column === "") problems.push(`OUTBOX_COLUMNS names no column for ${role}`);
    if (role === "flags") return [role, column.split("+").map((flag) => flag.trim())];
    return [role, column === "none" && !REQUIRED.has(role) ? null : column];
  });
  return Object.fromEntries(entries);
}
