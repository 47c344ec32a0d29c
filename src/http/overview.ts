import type { z } from "zod";
import type { Finding } from "../operations/doctor/finding.ts";
import type { LivingInstance, NotedAction } from "../operations/overview/relay-figures.ts";
import { MARKERS_MAX, type Marker } from "../telemetry/marker-book.ts";
import type { Point } from "../telemetry/point-ring.ts";
import type { Waiting } from "../telemetry/waiting.ts";
import type { Health } from "./health.ts";
import type { destinationSchema, overviewSchema, seriesSchema } from "./schemas/overview.ts";

export type Overview = z.output<typeof overviewSchema>;
export type Series = z.output<typeof seriesSchema>;
type Destination = z.output<typeof destinationSchema>;

interface OverviewFacts {
  readonly nowMs: number;
  readonly health: Health;
  readonly waiting: Waiting;
  readonly writtenPerSecond: number | null;
  readonly publishedPerSecond: number;
  readonly failedPerSecond: number;
  /** Of what waits; null when nobody knows. */
  readonly shrinkPerSecond: number | null;
  readonly retrying: number;
  readonly parkedKeys: number;
  readonly deadLetters: number;
  readonly publishedTotal: bigint;
  readonly destinations: readonly Destination[];
  readonly instances: readonly LivingInstance[];
  readonly lastPoint: Point | null;
}

export function overviewOf(facts: OverviewFacts): Overview {
  const { health, nowMs, waiting } = facts;
  return {
    at: new Date(nowMs).toISOString(),
    service: health.service,
    health: health.status,
    problems: (health.problems ?? []).map(({ name, part, reason }) => ({
      what: `${part} ${name}: ${reasonPart(reason)}`,
      fix: fixOf(part, reason),
    })),
    ...waiting,
    drainMs: drainMs(facts),
    writtenPerSecond: rounded(facts.writtenPerSecond),
    publishedPerSecond: rounded(facts.publishedPerSecond),
    failedPerSecond: rounded(facts.failedPerSecond),
    retrying: facts.retrying,
    parkedKeys: facts.parkedKeys,
    deadLetters: facts.deadLetters,
    publishedTotal: facts.publishedTotal.toString(),
    destinations: [...facts.destinations],
    instances: [...facts.instances],
    lastPoint: facts.lastPoint,
  };
}

/** Of a service that says of itself only how it is. */
export function bareOverview(health: Health): Overview {
  return overviewOf({
    nowMs: Date.parse(health.timestamp),
    health,
    waiting: { pending: health.unpublishedEventCount, isEstimate: health.isEstimate === true, oldestAgeMs: null },
    writtenPerSecond: null,
    publishedPerSecond: 0,
    failedPerSecond: 0,
    shrinkPerSecond: null,
    retrying: 0,
    parkedKeys: 0,
    deadLetters: 0,
    publishedTotal: 0n,
    destinations: [],
    instances: [],
    lastPoint: null,
  });
}

/** What is known without looking, for a service that no doctor can examine at present. */
export function findingsOf({ problems = [] }: Health): readonly Finding[] {
  return problems.map(({ name, part, reason }) => ({
    severity: part === "database" ? "error" : "warning",
    check: part,
    what: `${name}: ${reasonPart(reason)}`,
    fix: fixOf(part, reason) ?? "Look at the service's log.",
  }));
}

/** Beyond what was counted nobody sees whether it shrinks: then the pace of delivery is all there is to go by. */
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

export function destinationState(facts: StateFacts): Destination["state"] {
  if (facts.isPaused) return "paused";
  if (facts.isCircuitOpen) return "circuit-open";
  if (facts.isUnreachable) return "unreachable";
  return facts.isBusy ? "running" : "idle";
}

/** An error of ours says in its text what mends it, behind its code. */
const OUR_CODE = / \[[A-Z_]+\] ?/;

function reasonPart(reason: string): string {
  return reason.split(OUR_CODE)[0] ?? reason;
}

type Part = NonNullable<Health["problems"]>[number]["part"];

const FIXES: Readonly<Record<Part, string | null>> = {
  database: "Check that the database runs and can be reached from here. Nothing is lost meanwhile: events wait in it.",
  source: "Run `outbox-relay doctor`: it looks at the table and prints what mends it.",
  destination: "Check that it runs and can be reached from here. Events wait, and go on by themselves.",
  relay: null,
};

function fixOf(part: Part, reason: string): string | null {
  return reason.split(OUR_CODE)[1] || FIXES[part];
}

/** Two digits behind the point: more is noise. */
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

/** What the relay itself told of and what the audit says, as one list, each thing once. */
export function markersOf(told: readonly Marker[], actions: readonly NotedAction[]): readonly Marker[] {
  const noted = actions.map(({ action, actor, at, target }): Marker => {
    const isPlan = action.startsWith("plan-");
    const what = `${WORDS[action] ?? action}${actor === "relay" ? "" : ` by ${actor}`}`;
    return { at, what, pipeline: isPlan ? null : target };
  });
  const isNoted = (marker: Marker) => noted.some((it) => isSame(marker, it));
  return [...told.filter((marker) => !isNoted(marker)), ...noted]
    .toSorted((left, right) => Date.parse(left.at) - Date.parse(right.at))
    .slice(-MARKERS_MAX);
}

/** An instance sees within a few seconds what a person has wished. */
const SEEN_WITHIN_MS = 15_000;

function isSame(told: Marker, noted: Marker): boolean {
  const verb = (what: string) => what.split(" ")[0];
  const laterMs = Date.parse(told.at) - Date.parse(noted.at);
  return (
    told.pipeline !== null &&
    told.pipeline === noted.pipeline &&
    verb(told.what) === verb(noted.what) &&
    Math.abs(laterMs) < SEEN_WITHIN_MS
  );
}
