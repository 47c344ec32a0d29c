import {
  type CauseCode,
  consoleLink,
  type Grade,
  gradeOf,
  type HealthCause,
  inOrder,
  runbookLink,
} from "../../core/health-cause.ts";
import type { Backlog, Unrouted } from "../../ports/queue-store.ts";
import type { BacklogFigures } from "../../telemetry/backlog-watch.ts";
import { unroutedIn } from "../../telemetry/waiting.ts";
import type { DatabaseState } from "./database-check.ts";
import { type CauseFacts, type Noted, type Problem, partFix, partialCauses, reasonPart } from "./health-causes.ts";

/** The facts of one moment. */
export interface HealthFacts extends CauseFacts {
  readonly service: string;
  readonly uptimeS: number;
  readonly database: DatabaseState;
  /** Absent: `postgres`. */
  readonly databaseName?: string;
  /** Wall-clock time; null before the first poll. */
  readonly lastPollMs: number | null;
  readonly pollIntervalMs: number;
  readonly backlog: readonly BacklogFigures[];
  /** By source. Absent: unknown. */
  readonly unrouted?: readonly Unrouted[];
  /** Other warnings, in words. */
  readonly remarks: readonly string[];
  /** Why notifications fail; null when they arrive. Absent: none are configured. */
  readonly notifier?: string | null;
}

/** The answer of the health route. */
export interface Health {
  /** For programs: only `unhealthy` is answered with 503. */
  readonly status: "healthy" | "degraded" | "unhealthy";
  /** For people: `attention` is healthy, but an operator should look. */
  readonly grade: Grade;
  /** The worst first; empty for a healthy relay. */
  readonly causes: readonly HealthCause[];
  readonly service: string;
  readonly timestamp: string;
  /** In seconds. */
  readonly uptime: number;
  readonly lastPollTime: string | null;
  /** Events that the relay still has to deliver; null before the first count. */
  readonly unpublishedEventCount: number | null;
  /** Events behind a dead letter, dead letters, and events without a route. Absent: none. */
  readonly behindDeadLetterCount?: number;
  readonly deadLetterCount?: number;
  readonly unroutedEventCount?: number;
  readonly isUnroutedEstimate?: true;
  readonly isEstimate?: true;
  readonly problems?: readonly Problem[];
}

/** Whether the service can work, and each check in words: "ok" or the reason. */
export interface Readiness {
  readonly isReady: boolean;
  readonly checks: { readonly database: string; readonly loops: string };
}

const POLL_AGE_MAX_MS = 30_000;

type PollFacts = Pick<HealthFacts, "lastPollMs" | "nowMs" | "pollIntervalMs" | "uptimeS">;

/** Ready while the database answers and the loops run. Brokers do not count: a restart would not repair them. */
export function readinessOf(database: DatabaseState, facts: PollFacts): Readiness {
  const stopped = pollProblem(facts);
  return {
    isReady: database.answers && stopped === null,
    checks: {
      database: database.answers ? "ok" : (database.reason ?? "it does not answer"),
      loops: stopped ?? "ok",
    },
  };
}

/** Why the loops appear to have stopped; null while they run. */
function pollProblem({ lastPollMs, nowMs, pollIntervalMs, uptimeS }: PollFacts): string | null {
  const ageMs = lastPollMs === null ? uptimeS * 1_000 : nowMs - lastPollMs;
  if (ageMs <= Math.max(POLL_AGE_MAX_MS, 3 * pollIntervalMs)) return null;
  return `no source could be polled ${lastPollMs === null ? "since the start" : `for ${Math.round(ageMs / 1_000)} s`}`;
}

/** Down when the relay cannot work at all, degraded when a part of it cannot. An idle relay is healthy. */
export function healthOf(facts: HealthFacts): Health {
  const { backlog, database, nowMs, service, uptimeS } = facts;
  const known = backlog.flatMap(({ last }) => (last === null ? [] : [last]));
  const isCounted = known.length > 0 || (backlog.length === 0 && database.answers);
  const sum = (count: (of: Backlog) => number) => known.reduce((total, last) => total + count(last), 0);
  const unrouted = unroutedIn(facts.unrouted ?? []);
  return {
    ...standingOf([...fatalCauses(facts), ...partialCauses(facts), ...youngCauses(facts)]),
    service,
    timestamp: new Date(nowMs).toISOString(),
    uptime: uptimeS,
    lastPollTime: lastPollTime(facts),
    unpublishedEventCount: isCounted ? sum(({ pending }) => pending) : null,
    ...unlessNone(
      "behindDeadLetterCount",
      sum(({ behindDead }) => behindDead),
    ),
    ...unlessNone(
      "deadLetterCount",
      sum(({ dead }) => dead),
    ),
    ...unlessNone("unroutedEventCount", unrouted?.events ?? 0),
    ...(unrouted?.isEstimate ? { isUnroutedEstimate: true as const } : {}),
    ...(known.some(({ isEstimate }) => isEstimate) ? { isEstimate: true as const } : {}),
  };
}

/** These optional counts appear only when they are not zero; the other fields are always present. */
function unlessNone<Name extends string>(name: Name, count: number): Partial<Record<Name, number>> {
  return count === 0 ? {} : ({ [name]: count } as Record<Name, number>);
}

const STATUSES = { ok: "healthy", attention: "healthy", degraded: "degraded", down: "unhealthy" } as const;

/** Status, grade and problems of a service with these causes. */
export function standingOf(noted: readonly Noted[]): Pick<Health, "status" | "grade" | "causes" | "problems"> {
  const causes = inOrder(noted.map(({ cause }) => cause));
  const grade = gradeOf(causes);
  const problems = noted.flatMap(({ problem }) => problem ?? []);
  return { status: STATUSES[grade], grade, causes, ...(problems.length > 0 ? { problems } : {}) };
}

interface PlainCause extends Pick<HealthCause, "code" | "grade"> {
  /** Chapter of the runbook. */
  readonly chapter: string;
  readonly since?: string | null;
}

const SCREENS: Readonly<Partial<Record<CauseCode, string>>> = {
  "no-table-yet": "/pipelines",
  "polls-stopped": "/instances",
  "not-polled-yet": "/instances",
  "notifications-failing": "/settings",
};

/** A cause that is known only from a problem. */
export function plainNote(problem: Problem, { chapter, code, grade, since = null }: PlainCause): Noted {
  const { name, part, reason } = problem;
  const ends = { pipeline: null, source: null, destination: part === "destination" ? name : null };
  const what = `${part} ${name}: ${reasonPart(reason)}`;
  const places = { link: consoleLink(SCREENS[code] ?? "/"), runbook: runbookLink(chapter) };
  const cause = { code, grade, ...ends, what, fix: partFix(part, reason), since, ...places };
  return { problem, cause };
}

function fatalCauses(facts: HealthFacts): readonly Noted[] {
  const { database, databaseName: name = "postgres" } = facts;
  const stopped = pollProblem(facts);
  const since = lastPollTime(facts);
  const away = { part: "database", name, reason: database.reason ?? "it does not answer" } as const;
  return [
    ...(database.answers
      ? []
      : [plainNote(away, { code: "database-unreachable", grade: "down", chapter: "lag", since })]),
    ...(stopped === null ? [] : [relayNote("poller", stopped, { code: "polls-stopped", grade: "down", since })]),
  ];
}

const NOT_BEGUN =
  "not every lane has started to read; with `LOG_START=now` the relay delivers only events written after that";

/** Causes of a service that has just started, or cannot determine its health. */
function youngCauses(facts: HealthFacts): readonly Noted[] {
  const since = new Date(facts.nowMs - facts.uptimeS * 1_000).toISOString();
  const young = { grade: "degraded", since } as const;
  return [
    ...facts.remarks.map((reason) => relayNote("sources", reason, { code: "no-table-yet", ...young })),
    ...(facts.notifier == null
      ? []
      : [relayNote("notifications", facts.notifier, { code: "notifications-failing", grade: "attention" })]),
    ...(isUncounted(facts)
      ? [relayNote("backlog", "events are not counted yet", { code: "not-counted-yet", ...young })]
      : []),
    ...facts.backlog
      .filter(({ last }) => last?.hasBegun === false)
      .map(({ pipeline }) => relayNote(pipeline, NOT_BEGUN, { code: "not-polled-yet", ...young })),
    ...(facts.lastPollMs === null ? [relayNote("poller", "no poll yet", { code: "not-polled-yet", ...young })] : []),
  ];
}

function relayNote(name: string, reason: string, cause: Omit<PlainCause, "chapter">): Noted {
  return plainNote({ part: "relay", name, reason }, { ...cause, chapter: "lag" });
}

function lastPollTime({ lastPollMs }: HealthFacts): string | null {
  return lastPollMs === null ? null : new Date(lastPollMs).toISOString();
}

/** A healthy relay must have a count. A broken source has its own cause and no count. */
function isUncounted({ backlog, broken, database }: HealthFacts): boolean {
  return database.answers && broken.length === 0 && backlog.length > 0 && backlog.every(({ last }) => last === null);
}
