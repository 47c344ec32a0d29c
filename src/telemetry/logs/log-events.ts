import type { Clock } from "../../core/clock.ts";
import type { FailedAttempt, TechnicalEvent, TechnicalEventName } from "../../ports/technical-events.ts";
import type { Listenable } from "../listenable.ts";
import { DeliverySums } from "../metrics/delivery-sums.ts";
import type { Logger } from "./logger.ts";
import { RepeatLimiter } from "./repeat-limiter.ts";

type Level = "debug" | "info" | "warn" | "error";
type Of<Name extends TechnicalEventName> = Extract<TechnicalEvent, { readonly name: Name }>;

interface Line<Name extends TechnicalEventName> {
  readonly level: Level | ((event: Of<Name>) => Level);
  readonly message: string;
  /** Events with the same key report the same fault: one per minute is logged. Absent: every event is logged. */
  readonly sameAs?: (event: Of<Name>) => string;
}

type Lines = { readonly [Name in TechnicalEventName]?: Line<Name> };

const LINES: Lines = {
  IntentDeadLettered: { level: "error", message: "an event became a dead letter" },
  RelayMismatch: {
    level: "warn",
    message: "no running relay has a route for events of this type",
    sameAs: ({ pipeline, intentType }) => `${pipeline} ${intentType}`,
  },
  RelayMatched: {
    level: "info",
    message: "events of this type are routed now, are gone, or are reported by another relay",
  },
  EventVanished: {
    level: "warn",
    message: "a row in flight is no longer pending: it was deleted, marked or hidden, but not by this relay",
  },
  EventRepeated: {
    level: "warn",
    message:
      "the log has a second row with the id of an event in flight or parked and the relay skipped it: ids must be unique",
    sameAs: ({ pipeline }) => pipeline,
  },
  SettleDelayed: {
    level: "warn",
    message: "outcomes cannot be written; retrying",
    sameAs: ({ pipeline, lane, code }) => `${pipeline} ${lane} ${code}`,
  },
  InstanceJoined: { level: "info", message: "this instance joined" },
  InstanceLost: { level: "warn", message: "this instance lost its lease and joins again" },
  InstanceReaped: { level: "warn", message: "a dead instance was removed" },
  LaneTaken: { level: "info", message: "a lane was taken" },
  LaneHealed: { level: "info", message: "a lane's former owner had delivered more than was settled" },
  LaneReleased: { level: "info", message: "a lane was released" },
  LaneFailed: {
    level: "warn",
    message: "a lane was lost; taking it over again",
    sameAs: ({ pipeline, lane, code }) => `${pipeline} ${lane} ${code}`,
  },
  PublishStuck: {
    level: "error",
    message: "the destination's client does not end a publish; the lane continues without it",
  },
  LaneUnbraked: { level: "info", message: "a lane accepts new events again" },
  LaneBraked: { level: "error", message: "a lane has too many failed events and accepts no new ones" },
  CircuitOpened: { level: "error", message: "a circuit opened: the destination accepts no events, and they wait" },
  CircuitClosed: { level: "info", message: "a circuit closed: the destination accepts events again" },
  PipelinePaused: { level: "warn", message: "a pipeline is paused; its events wait until it is resumed" },
  PipelineResumed: { level: "info", message: "a pipeline was resumed" },
  PipelineLimited: { level: "info", message: "the rate limit of a pipeline changed; null means no limit" },
  SourceBroken: {
    level: "error",
    message: "a source cannot be read; retrying",
    sameAs: ({ pipeline, code }) => `${pipeline} ${code}`,
  },
  SourceRecovered: { level: "info", message: "a source recovered" },
  SourceWarned: { level: "warn", message: "a source works, with a warning" },
  SourceWarningEnded: { level: "info", message: "a source warning ended" },
  ChoreFailed: {
    level: "warn",
    message: "a chore failed; retrying",
    sameAs: ({ pipeline, chore }) => `${pipeline} ${chore}`,
  },
  StaleClaimsReaped: { level: "info", message: "stale claims were freed" },
  EventsPruned: { level: "info", message: "delivered rows were deleted" },
};

const REPEAT_EVERY_MS = 60_000;
/** Bounds each error in the history of a dead letter. */
const REASON_MAX = 500;

interface LogEventsOptions {
  readonly logger: Logger;
  readonly clock: Clock;
  /** `all` also logs a line for every delivered event. */
  readonly events: "failures" | "all";
}

/**
 * Writes technical events as log lines: those that help an on-call engineer, without repeats. Returns the function that
 * writes the delivery sums that are still open.
 */
export function logEvents(relay: Listenable, { logger, clock, events }: LogEventsOptions): () => void {
  const repeats = new RepeatLimiter(clock, REPEAT_EVERY_MS);
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
  // A fault that returns after a recovery is logged at once.
  relay.on("SourceRecovered", ({ pipeline }) => repeats.forget(`SourceBroken ${pipeline} `));
  const sums = new DeliverySums(clock, (sum) => {
    const message = sum.delivered === 0 ? "no event was delivered, failures were stored" : "events delivered";
    logger.info({ event: "BatchSettled", ...sum }, message);
  });
  relay.on("BatchSettled", (event) => sums.add(event));
  // Only failures of the event itself spend an attempt. The circuit's lines report the others.
  const others = events === "all" ? "info" : "debug";
  const level = ({ scope }: Of<"IntentRelayFailed">) => (scope === "event" ? "warn" : others);
  listen("IntentRelayFailed", { level, message: "an event was not delivered" });
  if (events === "all") listen("IntentRelayed", { level: "info", message: "an event was delivered" });
  return () => sums.flush();
}

/** Field names as in all logs: `event` is what happened, `eventId` and `eventType` say to which event. */
function fieldsOf(event: TechnicalEvent): object {
  const { name, timestamp: _, ...fields } = event;
  const renamed = Object.entries(fields).map(([field, value]) => [FIELD_NAMES[field] ?? field, plain(value)]);
  return { event: name, ...Object.fromEntries(renamed) };
}

/** Bigints as text, and long histories shortened: log stores reject very long lines. */
function plain(value: unknown): unknown {
  if (typeof value === "bigint") return value.toString();
  if (!Array.isArray(value)) return value;
  return (value as readonly FailedAttempt[]).map((attempt) => ({ ...attempt, reason: shortened(attempt.reason) }));
}

function shortened(text: string): string {
  return text.length <= REASON_MAX ? text : `${text.slice(0, REASON_MAX)}…`;
}

const FIELD_NAMES: Readonly<Record<string, string>> = { recordId: "eventId", intentType: "eventType" };
