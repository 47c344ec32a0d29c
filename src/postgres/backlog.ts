import { BACKLOG_EXACT_MAX, type Backlog } from "../ports/queue-store.ts";
import type { ErrorContext } from "./errors.ts";
import type { Database } from "./pool.ts";
import type { Row } from "./session.ts";
import { statement } from "./transaction.ts";

/** Whoever asks is a person or an alarm; the delivery must not notice. */
const BACKLOG_MS = 2_000;

interface BacklogStatements {
  readonly context: ErrorContext;
  /** Gives one row: the count of waiting events up to one beyond the limit, the oldest's age in ms, the dead. */
  readonly count: string;
  /** Any query whose rows are about the waiting events; it is never run, only estimated. */
  readonly waiting: string;
}

/** Counts what waits, and beyond the limit takes the planner's word for it, which costs nothing. */
export async function readBacklog(
  database: Database,
  { context, count, waiting }: BacklogStatements,
): Promise<Backlog> {
  const settings = {
    context,
    statementTimeoutMs: BACKLOG_MS,
    lockTimeoutMs: BACKLOG_MS,
    readOnly: true,
    settings: { jit: "off", work_mem: "64MB" },
  };
  const [row] = await statement(database.pool, settings, count);
  const counted = Number(row?.[0]);
  const figures = { oldestAgeMs: ageOf(row?.[1] ?? null), dead: Number(row?.[2]) };
  if (counted <= BACKLOG_EXACT_MAX) return { pending: counted, isEstimate: false, ...figures };
  const [plan] = await statement(database.pool, settings, `explain (format json) ${waiting}`);
  return { pending: Math.max(counted, estimateOf(plan)), isEstimate: true, ...figures };
}

/** A clock that stepped back, or a row that says it is from the future, makes nothing late. */
function ageOf(text: string | null): number | null {
  return text === null ? null : Math.max(0, Number(text));
}

function estimateOf(plan: Row | undefined): number {
  const [explained] = JSON.parse(plan?.[0] ?? "[]") as [{ readonly Plan?: { readonly "Plan Rows"?: number } }?];
  return explained?.Plan?.["Plan Rows"] ?? 0;
}
