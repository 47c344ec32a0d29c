import type { Clock } from "../core/clock.ts";
import type { FailedAttempt, TechnicalEvent, TechnicalEventName } from "../ports/technical-events.ts";
import { DeliverySums } from "./delivery-sums.ts";
import type { Listenable } from "./listenable.ts";
import type { Logger } from "./logger.ts";
import { Repeats } from "./repeats.ts";

type Level = "debug" | "info" | "warn" | "error";
type Of<Name extends TechnicalEventName> = Extract<TechnicalEvent, { readonly name: Name }>;

interface Line<Name extends TechnicalEventName> {
  readonly level: Level | ((event: Of<Name>) => Level);
  readonly message: string;
  /** What makes two of them the same trouble: then only one a minute is logged. Absent: each is. */
  readonly sameAs?: (event: Of<Name>) => string;
}

type Lines = { readonly [Name in TechnicalEventName]?: Line<Name> };

const LINES: Lines = {
  IntentDeadLettered: { level: "error", message: "an event is a dead letter" },
  RelayMismatch: {
    level: "warn",
    message: "no relay takes events of this type",
    sameAs: ({ pipeline, intentType }) => `${pipeline} ${intentType}`,
  },
  RelayMatched: {
    level: "info",
    message: "events of this type are taken now, are gone, or are told of by another relay",
  },
  EventVanished: {
    level: "warn",
    message: "a row in flight waits no more: it was deleted, marked or hidden, not by this relay",
  },
  EventRepeated: {
    level: "warn",
    message: "a second row of the log has the id of an event under way and was passed over: ids must be unique",
    sameAs: ({ pipeline }) => pipeline,
  },
  SettleDelayed: {
    level: "warn",
    message: "outcomes cannot be written at present",
    sameAs: ({ pipeline, lane, code }) => `${pipeline} ${lane} ${code}`,
  },
  InstanceJoined: { level: "info", message: "this instance joined" },
  InstanceLost: { level: "warn", message: "this instance lost its lease and joins again" },
  InstanceReaped: { level: "warn", message: "a dead instance was taken off the list" },
  LaneTaken: { level: "info", message: "a lane was taken" },
  LaneHealed: { level: "info", message: "a lane's former owner had delivered more than was settled" },
  LaneReleased: { level: "info", message: "a lane was handed over" },
  LaneFailed: {
    level: "warn",
    message: "a lane was lost and is taken again",
    sameAs: ({ pipeline, lane, code }) => `${pipeline} ${lane} ${code}`,
  },
  PublishStuck: {
    level: "error",
    message: "the destination's client does not end a publish; the lane goes on without it",
  },
  LaneUnbraked: { level: "info", message: "a lane takes new events again" },
  LaneBraked: { level: "error", message: "a lane has so many failed events that it takes nothing new" },
  CircuitOpened: { level: "error", message: "the destination takes nothing; events wait" },
  CircuitClosed: { level: "info", message: "the destination takes events again" },
  PipelinePaused: { level: "warn", message: "a pipeline is paused; its events wait until it is resumed" },
  PipelineResumed: { level: "info", message: "a pipeline goes on" },
  PipelineLimited: { level: "info", message: "the limit of a pipeline has changed; null is none" },
  SourceBroken: {
    level: "error",
    message: "a source cannot be used; it is tried again",
    sameAs: ({ pipeline, code }) => `${pipeline} ${code}`,
  },
  SourceRecovered: { level: "info", message: "a source works again" },
  SourceWarned: { level: "warn", message: "something is wrong with a source that works" },
  SourceWarningEnded: { level: "info", message: "a warning about a source is over" },
  ChoreFailed: {
    level: "warn",
    message: "a chore failed; it is tried again",
    sameAs: ({ pipeline, chore }) => `${pipeline} ${chore}`,
  },
  StaleClaimsReaped: { level: "info", message: "stale claims were freed" },
  EventsPruned: { level: "info", message: "delivered rows were deleted" },
};

const REPEAT_EVERY_MS = 60_000;
/** Of each error in the history of a dead letter. */
const REASON_MAX = 500;

interface LogEventsOptions {
  readonly logger: Logger;
  readonly clock: Clock;
  /** `all` writes a line for every delivered event too. */
  readonly events: "failures" | "all";
}

/**
 * Makes log lines of technical events: what a person needs at night, and none of it over and over. Returns the function
 * that writes what was still being summed up.
 */
export function logEvents(relay: Listenable, { logger, clock, events }: LogEventsOptions): () => void {
  const repeats = new Repeats(clock, REPEAT_EVERY_MS);
  const listen = <Name extends TechnicalEventName>(name: Name, line: Line<Name>) => {
    relay.on(name, (event) => {
      const same = line.sameAs?.(event);
      const repeated = same === undefined ? 0 : repeats.count(`${name} ${same}`);
      if (repeated === null) return;
      const level = typeof line.level === "function" ? line.level(event) : line.level;
      logger[level]({ ...fieldsOf(event), ...(repeated > 0 ? { repeated } : {}) }, line.message);
    });
  };
  for (const name of Object.keys(LINES) as TechnicalEventName[]) listen(name, LINES[name] as Line<typeof name>);
  // What was over and comes back is news.
  relay.on("SourceRecovered", ({ pipeline }) => repeats.forget(`SourceBroken ${pipeline} `));
  const sums = new DeliverySums(clock, (sum) =>
    logger.info({ event: "BatchSettled", ...sum }, "events were delivered"),
  );
  relay.on("BatchSettled", (event) => sums.add(event));
  // Only an error of its own spends an attempt; the others are told by their circuit.
  const others = events === "all" ? "info" : "debug";
  const level = ({ scope }: Of<"IntentRelayFailed">) => (scope === "event" ? "warn" : others);
  listen("IntentRelayFailed", { level, message: "an event could not be delivered" });
  if (events === "all") listen("IntentRelayed", { level: "info", message: "an event was delivered" });
  return () => sums.flush();
}

/** The names that logs have everywhere: `event` is what happened, `eventId` and `eventType` what it happened to. */
function fieldsOf(event: TechnicalEvent): object {
  const { name, timestamp: _, ...fields } = event;
  const renamed = Object.entries(fields).map(([field, value]) => [FIELD_NAMES[field] ?? field, plain(value)]);
  return { event: name, ...Object.fromEntries(renamed) };
}

/** What JSON cannot hold as text; and of a long history the beginnings, or the line is too long for log stores. */
function plain(value: unknown): unknown {
  if (typeof value === "bigint") return value.toString();
  if (!Array.isArray(value)) return value;
  return (value as readonly FailedAttempt[]).map((attempt) => ({ ...attempt, reason: shortened(attempt.reason) }));
}

function shortened(text: string): string {
  return text.length <= REASON_MAX ? text : `${text.slice(0, REASON_MAX)}…`;
}

const FIELD_NAMES: Readonly<Record<string, string>> = { recordId: "eventId", intentType: "eventType" };
