import {
  type CauseCode,
  consoleLink,
  destinationLink,
  endsOf,
  type HealthCause,
  pipelineLink,
  runbookLink,
} from "../../core/health-cause.ts";
import { plural } from "../../core/plural.ts";
import { quotedValue } from "../../operations/filter/filter-words.ts";
import { type PipelineFacts, pipelineCauses } from "../../operations/pipelines/pipeline-causes.ts";
import { withoutServerText } from "../../postgres/errors.ts";
import type { BrakedLane, BrokenSource, FailedChore, FailingLane, OpenCircuit } from "../../telemetry/condition.ts";

/** A destination that answers slower than usual. */
export interface SlowDestination {
  readonly destination: string;
  readonly presentMs: number;
  readonly usualMs: number;
  /** Wall-clock time. */
  readonly sinceMs: number;
}

/** Input for the causes. An absent field was not checked. */
export interface CauseFacts {
  readonly broken: readonly BrokenSource[];
  /** Warnings about sources that work. */
  readonly warnings?: readonly BrokenSource[];
  readonly circuits: readonly OpenCircuit[];
  /** Lanes whose brake stopped new events. */
  readonly brakedLanes: readonly BrakedLane[];
  readonly failingLanes?: readonly FailingLane[];
  readonly failedChores?: readonly FailedChore[];
  /** Brokers that cannot be reached, although no event has failed by it yet. */
  readonly unreachable: readonly string[];
  readonly slow?: readonly SlowDestination[];
  /** The last upkeep of managed outboxes failed. */
  readonly upkeep?: { readonly reason: string; readonly sinceMs: number } | null;
  /** Pipelines that delivered nothing for so long, although events wait and no other cause explains it. */
  readonly stalled?: readonly { readonly pipeline: string; readonly pending: number; readonly forMs: number }[];
  /** How many event types of its source no relay handles. */
  readonly untaken?: readonly { readonly pipeline: string; readonly types: number; readonly sinceMs?: number }[];
  readonly pipelines?: readonly PipelineFacts[];
  readonly nowMs: number;
}

/** A part of a service that cannot work, in the stable form for programs. */
export interface Problem {
  readonly part: Part;
  readonly name: string;
  readonly reason: string;
}

/** A cause, and the problem in it, if any. */
export interface Noted {
  readonly cause: HealthCause;
  readonly problem: Problem | null;
}

/** All causes except those that stop the whole relay. */
export function partialCauses(facts: CauseFacts): readonly Noted[] {
  return [
    ...facts.broken.map((it) => sourceNote(it, "source-broken", "cannot be read or marked")),
    ...(facts.warnings ?? []).map((it) => sourceNote(it, "source-warning", "works, but may hold events back")),
    ...facts.circuits.map(circuitNote),
    ...facts.brakedLanes.map(brakedNote),
    ...(facts.failingLanes ?? []).map(failingNote),
    ...unreachableNotes(facts),
    ...upkeepNotes(facts),
    ...stalledNotes(facts),
    ...choreNotes(facts),
    ...[...slowCauses(facts), ...untakenCauses(facts), ...pipelineCauses(facts.pipelines ?? [])].map(onlyCause),
  ];
}

function onlyCause(cause: HealthCause): Noted {
  return { cause, problem: null };
}

function iso(sinceMs: number | undefined): string | null {
  return sinceMs === undefined ? null : new Date(sinceMs).toISOString();
}

const NO_ENDS = { pipeline: null, source: null, destination: null } as const;

function sourceNote({ pipeline, reason, sinceMs }: BrokenSource, code: CauseCode, what: string): Noted {
  const problem = { part: "source", name: pipeline, reason: withoutValues(reason) } as const;
  const chapter = code === "source-broken" ? "source-broken" : "source-warning";
  return {
    problem,
    cause: {
      ...{ code, grade: "degraded", ...endsOf(pipeline) },
      what: `${pipeline} ${what}: ${reasonPart(problem.reason)}`,
      ...{ fix: partFix("source", problem.reason), since: iso(sinceMs) },
      ...{ link: pipelineLink(pipeline), runbook: runbookLink(chapter) },
    },
  };
}

function circuitNote({ destination, reason: given, sinceMs, topic }: OpenCircuit): Noted {
  const reason = withoutValues(given);
  const name = topic === null ? destination : `${destination} topic ${topic}`;
  const what =
    topic === null ? `${destination} accepts no events` : `Topic ${topic} of ${destination} accepts no events`;
  return {
    problem: { part: "destination", name, reason },
    cause: {
      ...{ code: "circuit-open", grade: "degraded", ...NO_ENDS, destination },
      what: `${what}: ${reasonPart(reason)}`,
      ...{ fix: partFix("destination", reason), since: iso(sinceMs) },
      link: destinationLink(destination),
      runbook: runbookLink(topic === null ? "destination-down" : "topics-blocked"),
    },
  };
}

function brakedNote({ holds, lane, pipeline, sinceMs }: BrakedLane): Noted {
  const advice = "replay or discard its dead letters, or fix the reason why so many events fail";
  const seen = `lane ${lane} reads no new events: others wait behind ${holds} failed events`;
  return {
    problem: { part: "relay", name: pipeline, reason: `${seen}; ${advice}` },
    cause: {
      ...{ code: "lane-braked", grade: "degraded", ...endsOf(pipeline) },
      what: `${pipeline}: ${seen}`,
      fix: "Replay or discard its dead letters, or fix the reason why so many events fail.",
      ...{ since: iso(sinceMs), link: consoleLink("/keys", { pipeline }) },
    },
  };
}

function failingNote({ lane, pipeline, reason, sinceMs }: FailingLane): Noted {
  const seen = `lane ${lane} delivers nothing: every attempt to read it fails`;
  const shown = withoutValues(reason);
  return {
    problem: { part: "relay", name: pipeline, reason: `${seen}: ${shown}` },
    cause: {
      ...{ code: "lane-failing", grade: "degraded", ...endsOf(pipeline) },
      what: `${pipeline}: ${seen}: ${reasonPart(shown)}`,
      ...{ fix: partFix("source", shown), since: iso(sinceMs) },
      ...{ link: pipelineLink(pipeline), runbook: runbookLink("degraded") },
    },
  };
}

function unreachableNotes({ circuits, unreachable }: CauseFacts): readonly Noted[] {
  const isReported = (name: string) =>
    circuits.some(({ destination, topic }) => destination === name && topic === null);
  const reason = "none of its brokers can be reached";
  return unreachable
    .filter((name) => !isReported(name))
    .map((name) => ({
      problem: { part: "destination", name, reason },
      cause: {
        ...{ code: "destination-unreachable", grade: "degraded", ...NO_ENDS, destination: name },
        ...{ what: `${name}: ${reason}`, fix: partFix("destination", reason), since: null },
        ...{ link: destinationLink(name), runbook: runbookLink("destination-down") },
      },
    }));
}

function upkeepNotes({ upkeep = null }: CauseFacts): readonly Noted[] {
  if (upkeep === null) return [];
  const reason = withoutValues(upkeep.reason);
  return [
    {
      problem: { part: "source", name: "managed outbox", reason: `its upkeep failed: ${reason}` },
      cause: {
        ...{ code: "upkeep-failed", grade: "degraded", ...NO_ENDS },
        what: `The upkeep of a managed outbox failed, so partitions may be missing soon: ${reasonPart(reason)}`,
        ...{ fix: partFix("source", reason), since: iso(upkeep.sinceMs) },
        ...{ link: consoleLink("/pipelines"), runbook: runbookLink("degraded") },
      },
    },
  ];
}

function stalledNotes({ nowMs, stalled = [] }: CauseFacts): readonly Noted[] {
  return stalled.map(({ forMs, pending, pipeline }) => {
    const reason = `${pending.toLocaleString("en-US")} events wait, and none has been delivered for ${Math.round(forMs / 1_000)} s`;
    return {
      problem: { part: "relay", name: pipeline, reason },
      cause: {
        ...{ code: "pipeline-stalled", grade: "degraded", ...endsOf(pipeline) },
        ...{ what: `${pipeline}: ${reason}`, fix: "Check its lanes, and the log of the relay that owns them." },
        ...{ since: iso(nowMs - forMs), link: pipelineLink(pipeline), runbook: runbookLink("degraded") },
      },
    };
  });
}

/** A source that cannot be read has its own cause already. */
function choreNotes({ broken, failedChores = [] }: CauseFacts): readonly Noted[] {
  const isReported = (name: string) => broken.some(({ pipeline }) => pipeline === name);
  return failedChores
    .filter(({ pipeline }) => !isReported(pipeline))
    .map(({ chore, pipeline, reason: given, sinceMs }) => {
      const reason = withoutValues(given);
      return onlyCause({
        ...{ code: "chore-failed", grade: "attention", ...endsOf(pipeline) },
        what: `${pipeline}: the chore "${chore}" fails: ${reasonPart(reason)}`,
        ...{ fix: partFix("source", reason), since: iso(sinceMs) },
        ...{ link: pipelineLink(pipeline), runbook: runbookLink("degraded") },
      });
    });
}

function slowCauses({ slow = [] }: CauseFacts): readonly HealthCause[] {
  return slow.map(({ destination, presentMs, sinceMs, usualMs }) => ({
    ...{ code: "destination-slow", grade: "attention", ...NO_ENDS, destination },
    what: `${destination} is slow: its median response time is ${msText(presentMs)}, usually ${msText(usualMs)}`,
    fix: "Check the destination. Pause or limit its pipelines if it is overloaded.",
    ...{ since: iso(sinceMs), link: destinationLink(destination) },
  }));
}

function untakenCauses({ untaken = [] }: CauseFacts): readonly HealthCause[] {
  return untaken.map(({ pipeline, sinceMs, types }) => ({
    ...{ code: "types-untaken", grade: "attention", ...endsOf(pipeline) },
    // Rows of a table wait; the readers of a log pass them.
    what: `No running relay handles ${plural(types, "type")} of events in ${endsOf(pipeline).source}`,
    ...{ fix: "Add a route for them, or start the relay that handles them.", since: iso(sinceMs) },
    link: consoleLink("/events", { q: `state:unrouted${sourceFilter(pipeline)}` }),
    runbook: runbookLink("types-untaken"),
  }));
}

/** A subscriber's source has its name appended, which is no table. */
function sourceFilter(pipeline: string): string {
  const source = endsOf(pipeline).source?.replace(/@[^@]*$/, "");
  return source === undefined ? "" : ` source:${quotedValue(source)}`;
}

function msText(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`;
}

/** The part of the service that a health reason is about. */
type Part = "database" | "source" | "destination" | "relay";

/**
 * Removes what the database says, ids that ROW_UNMARKED and ID_NOT_UNIQUE name, and texts that receivers answered.
 * Everyone can read the health, so it must show no value of an event.
 */
function withoutValues(reason: string): string {
  return withoutServerText(reason)
    .replaceAll(/; it said: .*$/gs, "")
    .replaceAll(/ Ids: .*?(?= \[ROW_UNMARKED\])/gs, "")
    .replaceAll(/ have the id .*(?=; only one of them was sent \[ID_NOT_UNIQUE\])/gs, " have the same id");
}

/** Our own errors name the fix in their text, after the code. */
const OUR_CODE = / \[[A-Z_]+\] ?/;

/** The reason without the fix that one of our own errors appends. */
export function reasonPart(reason: string): string {
  return reason.split(OUR_CODE)[0] ?? reason;
}

const FIXES: Readonly<Record<Part, string | null>> = {
  database: "Check that the database runs and can be reached from here. No events are lost: they wait in it.",
  source: "Run `outbox-relay doctor`: it checks the table and prints the fix.",
  destination:
    "Check that it runs and can be reached from here. Events wait, and the relay sends them as soon as it answers.",
  relay: null,
};

/** What to do about a reason; null where nothing general helps. */
export function partFix(part: Part, reason: string): string | null {
  return reason.split(OUR_CODE)[1] || FIXES[part];
}
