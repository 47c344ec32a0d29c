import type { ColumnNames } from "../../postgres/column-names.ts";
import { nearestName } from "../../routing/nearest-name.ts";

/** The parts of an event, as OUTBOX_COLUMNS names them. */
const ROLES = [
  "id",
  "type",
  "key",
  "payload",
  "headers",
  "correlationId",
  "causationId",
  "contentType",
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
 * Parses OUTBOX_COLUMNS. `key=none` disables a column although a usual name for it exists. For logs `position` is an
 * alias of `order`.
 */
export function columnsConfig(written: Readonly<Record<string, string>> | undefined, problems: string[]): ColumnNames {
  const entries = Object.entries(written ?? {}).map(([role, column]): [string, unknown] => {
    if (role === "position") return ["order", column];
    if (!(ROLES as readonly string[]).includes(role)) {
      const nearest = nearestName(role, ROLES);
      const hint = nearest === undefined ? "" : `, did you mean ${nearest}?`;
      problems.push(
        `OUTBOX_COLUMNS has the unknown name ${JSON.stringify(role)}${hint} (known names: ${ROLES.join(", ")})`,
      );
    }
    if (column === "") problems.push(`OUTBOX_COLUMNS names no column for ${role}`);
    if (role === "flags") return [role, column.split("+").map((flag) => flag.trim())];
    return [role, column === "none" && !REQUIRED.has(role) ? null : column];
  });
  return Object.fromEntries(entries);
}
