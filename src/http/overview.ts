import type { z } from "zod";
import type { AnswerFigures } from "../core/answer-times.ts";
import type { Finding } from "../operations/doctor/finding.ts";
import type { LivingInstance, NotedAction } from "../operations/overview/relay-figures.ts";
import { MARKERS_MAX, type Marker } from "../telemetry/marker-book.ts";
import type { Point } from "../telemetry/metrics/point-ring.ts";
import type { Waiting } from "../telemetry/waiting.ts";
import type { Health } from "./health/health.ts";
import { partFix, reasonPart } from "./health/health-causes.ts";
import type { destinationSchema, overviewSchema, seriesSchema } from "./schemas/overview.ts";

/** The summary on the first screen. */
export type Overview = z.output<typeof overviewSchema>;
/** The points of the charts. */
export type Series = z.output<typeof seriesSchema>;
type Destination = z.output<typeof destinationSchema>;

interface OverviewFacts {
  readonly nowMs: number;
  readonly health: Health;
  readonly waiting: Waiting;
  readonly writtenPerSecond: number | null;
  readonly publishedPerSecond: number;
  readonly failedPerSecond: number;
  /** How fast the backlog shrinks; null when unknown. */
  readonly shrinkPerSecond: number | null;
  readonly retrying: number;
  readonly parkedKeys: number;
  readonly deadLetters: number;
  /** Events without a route; null when unknown. */
  readonly unrouted: { readonly events: number; readonly isEstimate: boolean } | null;
  readonly publishedTotal: bigint;
  readonly destinations: readonly Destination[];
  readonly instances: readonly LivingInstance[];
  readonly lastPoint: Point | null;
}

/** Builds the overview from the facts of one moment. */
export function overviewOf(facts: OverviewFacts): Overview {
  const { health, nowMs, waiting } = facts;
  return {
    at: new Date(nowMs).toISOString(),
    service: health.service,
    health: health.status,
    grade: health.grade,
    causes: [...health.causes],
    problems: (health.problems ?? []).map(({ name, part, reason }) => ({
      what: `${part} ${name}: ${reasonPart(reason)}`,
      fix: partFix(part, reason),
    })),
    ...waiting,
    drainMs: drainMs(facts),
    writtenPerSecond: rounded(facts.writtenPerSecond),
    publishedPerSecond: rounded(facts.publishedPerSecond),
    failedPerSecond: rounded(facts.failedPerSecond),
    retrying: facts.retrying,
    parkedKeys: facts.parkedKeys,
    deadLetters: facts.deadLetters,
    unrouted: facts.unrouted?.events ?? null,
    isUnroutedEstimate: facts.unrouted?.isEstimate ?? false,
    publishedTotal: facts.publishedTotal.toString(),
    destinations: [...facts.destinations],
    instances: [...facts.instances],
    lastPoint: facts.lastPoint,
  };
}

/** The overview of a service that knows only its health. */
export function bareOverview(health: Health): Overview {
  return overviewOf({
    nowMs: Date.parse(health.timestamp),
    health,
    waiting: {
      pending: health.unpublishedEventCount,
      isEstimate: health.isEstimate === true,
      oldestAgeMs: null,
      behindDeadLetters: health.behindDeadLetterCount ?? 0,
    },
    writtenPerSecond: null,
    publishedPerSecond: 0,
    failedPerSecond: 0,
    shrinkPerSecond: null,
    retrying: 0,
    parkedKeys: 0,
    deadLetters: health.deadLetterCount ?? 0,
    unrouted:
      health.unroutedEventCount === undefined
        ? null
        : { events: health.unroutedEventCount, isEstimate: health.isUnroutedEstimate === true },
    publishedTotal: 0n,
    destinations: [],
    instances: [],
    lastPoint: null,
  });
}

/** Findings from the health alone, for a service that the doctor cannot examine at the moment. */
export function findingsOf({ problems = [] }: Health): readonly Finding[] {
  return problems.map(({ name, part, reason }) => ({
    severity: part === "database" ? "error" : "warning",
    check: part,
    what: `${name}: ${reasonPart(reason)}`,
    fix: partFix(part, reason) ?? "Check the service's log.",
  }));
}

/** An estimated backlog does not show whether it shrinks: then the delivery rate is used. */
function drainMs({ publishedPerSecond, shrinkPerSecond, waiting }: OverviewFacts): number | null {
  const { isEstimate, pending } = waiting;
  if (pending === null || pending === 0) return pending;
  const pace = isEstimate ? publishedPerSecond : shrinkPerSecond;
  return pace === null || pace <= 0 ? null : Math.round((pending / pace) * 1_000);
}

interface StateFacts {
  readonly isPaused: boolean;
  readonly isCircuitOpen: boolean;
  readonly isUnreachable: boolean;
  readonly isBusy: boolean;
}

/** The one state of a destination; the first that matches is the most urgent. */
export function destinationState(facts: StateFacts): Destination["state"] {
  if (facts.isPaused) return "paused";
  if (facts.isCircuitOpen) return "circuit-open";
  if (facts.isUnreachable) return "unreachable";
  return facts.isBusy ? "running" : "idle";
}

/** The response times of a destination, rounded. */
export function answersOf(figures: AnswerFigures | null): Destination["answers"] {
  if (figures === null) return null;
  const { lastFiveMinutes, lastMinute, slow } = figures;
  const shown = ({ p50Ms, p99Ms, requests }: AnswerFigures["lastMinute"]) => {
    return { requests, p50Ms: rounded(p50Ms), p99Ms: rounded(p99Ms) };
  };
  const slowness = slow && {
    since: new Date(slow.sinceMs).toISOString(),
    presentMs: rounded(slow.presentMs),
    usualMs: rounded(slow.usualMs),
  };
  return { lastMinute: shown(lastMinute), lastFiveMinutes: shown(lastFiveMinutes), slow: slowness };
}

/** Two decimals: more would be noise. */
export function rounded<T extends number | null>(value: T): T {
  return (value === null ? null : Math.round(value * 100) / 100) as T;
}

const WORDS: Readonly<Record<string, string>> = {
  pause: "paused",
  resume: "resumed",
  limit: "limit changed",
  lanes: "lanes changed",
  "plan-run": "replay started",
  "plan-pause": "replay paused",
  "plan-cancel": "replay cancelled",
  "plan-stopped": "replay stopped",
  "plan-done": "replay done",
};

/** Merges the markers of the relay and of the audit into one list without duplicates. */
export function markersOf(reported: readonly Marker[], actions: readonly NotedAction[]): readonly Marker[] {
  const noted = actions.map(({ action, actor, at, target }): Marker => {
    const isPlan = action.startsWith("plan-");
    const what = `${WORDS[action] ?? action}${actor === "relay" ? "" : ` by ${actor}`}`;
    return { at, what, pipeline: isPlan ? null : target };
  });
  const isNoted = (marker: Marker) => noted.some((it) => isSame(marker, it));
  return [...reported.filter((marker) => !isNoted(marker)), ...noted]
    .toSorted((left, right) => Date.parse(left.at) - Date.parse(right.at))
    .slice(-MARKERS_MAX);
}

/** An instance notices an operator's change within a few seconds. */
const SEEN_WITHIN_MS = 15_000;

function isSame(reported: Marker, noted: Marker): boolean {
  const verb = (what: string) => what.split(" ")[0];
  const laterMs = Date.parse(reported.at) - Date.parse(noted.at);
  return (
    reported.pipeline !== null &&
    reported.pipeline === noted.pipeline &&
    verb(reported.what) === verb(noted.what) &&
    Math.abs(laterMs) < SEEN_WITHIN_MS
  );
}
