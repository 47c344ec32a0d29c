import type { BacklogFigures } from "../telemetry/backlog-watch.ts";
import type { BrakedLane, BrokenSource, OpenCircuit } from "../telemetry/condition.ts";
import type { DatabaseState } from "./database-check.ts";

/** What is known at one moment. */
export interface HealthFacts {
  readonly service: string;
  readonly nowMs: number;
  readonly uptimeS: number;
  readonly database: DatabaseState;
  /** Absent: `postgres`. */
  readonly databaseName?: string;
  /** Wall time; null before the first. */
  readonly lastPollMs: number | null;
  readonly pollIntervalMs: number;
  readonly broken: readonly BrokenSource[];
  /** About sources that work. Absent: none. */
  readonly warnings?: readonly BrokenSource[];
  readonly circuits: readonly OpenCircuit[];
  /** Lanes that take nothing new. */
  readonly brakedLanes: readonly BrakedLane[];
  /** Brokers that cannot be reached although no event has noticed. */
  readonly unreachable: readonly string[];
  readonly backlog: readonly BacklogFigures[];
  /** Other reasons to worry, in words. */
  readonly remarks: readonly string[];
}

interface Problem {
  readonly part: "database" | "source" | "destination" | "relay";
  readonly name: string;
  readonly reason: string;
}

export interface Health {
  readonly status: "healthy" | "degraded" | "unhealthy";
  readonly service: string;
  readonly timestamp: string;
  /** In seconds. */
  readonly uptime: number;
  readonly lastPollTime: string | null;
  /** Null while nobody could count. */
  readonly unpublishedEventCount: number | null;
  readonly isEstimate?: true;
  readonly problems?: readonly Problem[];
}

/** Whether it can work, and each check in words: "ok" or the reason. */
export interface Readiness {
  readonly isReady: boolean;
  readonly checks: { readonly database: string; readonly loops: string };
}

/** What PostgreSQL quotes of a row, and the ids that ROW_UNMARKED gives. Health is open to everybody, and shows no value of an event. */
function withoutValues(reason: string): string {
  return reason
    .replaceAll(/(invalid input (?:syntax|value) for [^:"]{1,100}: )"[^"]*"/g, '$1"..."')
    .replaceAll(/(?<=\bvalue )"[^"]*"(?= is out of range)/g, '"..."')
    .replaceAll(/Key \([^)]*\)=\([^)]*\)/g, "Key (...)")
    .replaceAll(/Failing row contains \(.*?\)/gs, "Failing row contains (...)")
    .replaceAll(/ Ids: .*?(?= \[ROW_UNMARKED\])/gs, "");
}

const POLL_AGE_MAX_MS = 30_000;

type PollFacts = Pick<HealthFacts, "lastPollMs" | "nowMs" | "pollIntervalMs" | "uptimeS">;

/** Ready while the database answers and the loops turn. What is beyond them, brokers too, is not asked. */
export function readinessOf(database: DatabaseState, facts: PollFacts): Readiness {
  const silence = pollSilence(facts);
  return {
    isReady: database.answers && silence === null,
    checks: {
      database: database.answers ? "ok" : (database.reason ?? "it does not answer"),
      loops: silence ?? "ok",
    },
  };
}

/** Why the loops seem to stand still; null while they turn. */
function pollSilence({ lastPollMs, nowMs, pollIntervalMs, uptimeS }: PollFacts): string | null {
  const ageMs = lastPollMs === null ? uptimeS * 1_000 : nowMs - lastPollMs;
  if (ageMs <= Math.max(POLL_AGE_MAX_MS, 3 * pollIntervalMs)) return null;
  return `no source could be polled ${lastPollMs === null ? "since the start" : `for ${Math.round(ageMs / 1_000)} s`}`;
}

/** Unhealthy when the relay cannot work at all, degraded when a part of it cannot. An idle relay is healthy. */
export function healthOf(facts: HealthFacts): Health {
  const { backlog, database, lastPollMs, nowMs, service, uptimeS } = facts;
  const fatal = fatalProblems(facts);
  const problems = [...fatal, ...partialProblems(facts)];
  const known = backlog.flatMap(({ last }) => (last === null ? [] : [last]));
  const isCounted = known.length > 0 || (backlog.length === 0 && database.answers);
  return {
    status: fatal.length > 0 ? "unhealthy" : problems.length > 0 ? "degraded" : "healthy",
    service,
    timestamp: new Date(nowMs).toISOString(),
    uptime: uptimeS,
    lastPollTime: lastPollMs === null ? null : new Date(lastPollMs).toISOString(),
    unpublishedEventCount: isCounted ? known.reduce((sum, { pending }) => sum + pending, 0) : null,
    ...(known.some(({ isEstimate }) => isEstimate) ? { isEstimate: true as const } : {}),
    ...(problems.length > 0 ? { problems } : {}),
  };
}

function fatalProblems(facts: HealthFacts): Problem[] {
  const { database, databaseName: name = "postgres" } = facts;
  const silence = pollSilence(facts);
  return [
    ...(database.answers ? [] : [{ part: "database", name, reason: database.reason ?? "it does not answer" } as const]),
    ...(silence === null ? [] : [{ part: "relay", name: "poller", reason: silence } as const]),
  ];
}

function partialProblems(facts: HealthFacts): Problem[] {
  const circuits = facts.circuits.map(({ destination, topic, reason }): Problem => {
    return { part: "destination", name: topic === null ? destination : `${destination} topic ${topic}`, reason };
  });
  const isTold = (name: string) =>
    facts.circuits.some(({ destination, topic }) => destination === name && topic === null);
  return [
    ...[...facts.broken, ...(facts.warnings ?? [])].map(({ pipeline, reason }): Problem => {
      return { part: "source", name: pipeline, reason: withoutValues(reason) };
    }),
    ...circuits,
    ...facts.brakedLanes.map(({ holds, lane, pipeline }): Problem => {
      const advice = "replay or discard its dead letters, or find out why so many events fail";
      const reason = `lane ${lane} takes no new events: ${holds} failed events keep others waiting; ${advice}`;
      return { part: "relay", name: pipeline, reason };
    }),
    ...facts.unreachable
      .filter((name) => !isTold(name))
      .map((name): Problem => ({ part: "destination", name, reason: "none of its brokers can be reached" })),
    ...facts.remarks.map((reason): Problem => ({ part: "relay", name: "sources", reason })),
    ...(isUncounted(facts) ? [{ part: "relay", name: "backlog", reason: "nobody has counted yet" } as const] : []),
    ...(facts.lastPollMs === null ? [{ part: "relay", name: "poller", reason: "no poll yet" } as const] : []),
  ];
}

/** Healthy means that the number is one. A source that is broken has its own reason, and no number. */
function isUncounted({ backlog, broken, database }: HealthFacts): boolean {
  return database.answers && broken.length === 0 && backlog.length > 0 && backlog.every(({ last }) => last === null);
}
