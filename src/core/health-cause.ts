/** From good to bad. `attention`: everything that can be delivered is delivered, but an operator is needed. */
export const GRADES = ["ok", "attention", "degraded", "down"] as const;

/** The health of a service or of a part of it. */
export type Grade = (typeof GRADES)[number];

/** The codes of health causes. They are stable, because alerts and scripts match them. */
export const CAUSE_CODES = [
  "database-unreachable",
  "polls-stopped",
  "not-polled-yet",
  "not-counted-yet",
  "no-table-yet",
  "source-broken",
  "source-warning",
  "circuit-open",
  "destination-unreachable",
  "destination-slow",
  "destination-paused",
  "pipeline-paused",
  "pipeline-stalled",
  "lane-braked",
  "lane-failing",
  "chore-failed",
  "upkeep-failed",
  "dead-letters",
  "keys-parked",
  "types-untaken",
  "pipeline-late",
  "pipeline-unserved",
  "count-failed",
  "requests-trouble",
  "notifications-failing",
] as const;

/** One of the stable codes. */
export type CauseCode = (typeof CAUSE_CODES)[number];

/** One reason why the health is not `ok`. It shows no payload, key or id of an event: health needs no login. */
export interface HealthCause {
  readonly code: CauseCode;
  readonly grade: Exclude<Grade, "ok">;
  /** The pipeline, source and destination that the cause is about; null where it is about none in particular. */
  readonly pipeline: string | null;
  readonly source: string | null;
  readonly destination: string | null;
  /** What happened. */
  readonly what: string;
  /** What to do; null when nothing has to be done. */
  readonly fix: string | null;
  /** ISO 8601; null where it is unknown. */
  readonly since: string | null;
  /** The screen of the console where an operator deals with it. */
  readonly link: string;
  /** The chapter of the runbook. Absent where `fix` says everything. */
  readonly runbook?: string;
}

/** The worst grade of the causes; `ok` without any. */
export function gradeOf(causes: readonly Pick<HealthCause, "grade">[]): Grade {
  return GRADES.findLast((grade) => causes.some((cause) => cause.grade === grade)) ?? "ok";
}

/** The worst causes first; within a grade, those that have lasted longest. */
export function inOrder(causes: readonly HealthCause[]): readonly HealthCause[] {
  const rank = ({ grade }: HealthCause) => -GRADES.indexOf(grade);
  const since = (cause: HealthCause) => cause.since ?? "9";
  return causes.toSorted((left, right) => rank(left) - rank(right) || (since(left) < since(right) ? -1 : 1));
}

/** A link to a screen of the console, which uses hash routes. */
export function consoleLink(path: string, query: Readonly<Record<string, string>> = {}): string {
  // Filters consist of `field:value`, and a colon is legal here: the link stays readable.
  const text = new URLSearchParams(query).toString().replaceAll("%3A", ":");
  return `/#${path}${text === "" ? "" : `?${text}`}`;
}

/** The console's screen of one destination. */
export function destinationLink(destination: string): string {
  return consoleLink(`/destinations/${encodeURIComponent(destination)}`);
}

/** The console's screen of one pipeline: its lanes, its controls and the doctor's findings. */
export function pipelineLink(pipeline: string): string {
  return consoleLink("/pipelines", { open: pipeline });
}

/** A chapter of the runbook. */
export function runbookLink(chapter: string): string {
  return `docs/operate/runbook.md#${chapter}`;
}

/** The source and the destination of a pipeline, from its name. */
export function endsOf(pipeline: string): Pick<HealthCause, "pipeline" | "source" | "destination"> {
  const cut = pipeline.lastIndexOf("->");
  if (cut < 0) return { pipeline, source: null, destination: null };
  return { pipeline, source: pipeline.slice(0, cut), destination: pipeline.slice(cut + 2) };
}
