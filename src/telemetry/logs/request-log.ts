import type { Clock } from "../../core/clock.ts";
import type { LoggedEvent } from "../../ports/event-log.ts";
import type { RequestGroup } from "../../ports/request-queue.ts";
import type { RequestListener, RequestState } from "../../requests/request-listener.ts";
import { contextName } from "../../requests/request-names.ts";
import type { Logger } from "./logger.ts";
import { RepeatLimiter } from "./repeat-limiter.ts";

const REPEAT_MS = 60_000;

const STATE_LINES: Readonly<
  Record<RequestState, { readonly level: "info" | "warn" | "error"; readonly message: string }>
> = {
  starting: { level: "info", message: "the relay of a context is starting" },
  standby: { level: "info", message: "another instance dispatches for this context; this one stands by" },
  running: { level: "info", message: "dispatching requests of this context" },
  broken: { level: "error", message: "requests cannot be dispatched; retrying" },
  halted: { level: "error", message: "dispatching for this context halted; fix the reason and restart" },
  stopped: { level: "info", message: "a context was released" },
};

/**
 * Logs requests. Every line has the same fields, so that one request can be followed from its command to its outcome.
 */
export function logRequests(logger: Logger, clock: Clock): RequestListener {
  const repeats = new RepeatLimiter(clock, REPEAT_MS);
  const states = new Map<string, RequestState>();
  return {
    dispatched(group, event, { delayMs, requestId, tenant }) {
      if (!logger.isLevelEnabled("info")) return;
      const due = { jobId: event.id, delayMs: delayMs > 0 ? delayMs : undefined, outcome: "dispatched" };
      const fields = { ...fieldsOf(group, event), tenant, requestId, ...due };
      logger.info({ event: "RequestDispatched", ...fields }, "a request was dispatched");
    },
    skipped(group, event, reason, link) {
      if (event === null) {
        logger.warn(
          { event: "RequestSkipped", ...groupFields(group), link, outcome: reason },
          "a link points to no event",
        );
        return;
      }
      const level = reason === "already dispatched" ? "info" : "debug";
      if (!logger.isLevelEnabled(level)) return;
      const fields = { ...fieldsOf(group, event), jobId: event.id, outcome: reason };
      logger[level]({ event: "RequestSkipped", ...fields }, "an event was not dispatched");
    },
    died(group, event, { reason }) {
      const fields = { ...fieldsOf(group, event), jobId: event.id, outcome: "dead", reason };
      logger.error({ event: "RequestDied", ...fields }, "an event requests a job that cannot be created");
    },
    lag() {},
    turned(group, state, why) {
      const name = contextName(group);
      const before = states.get(name);
      states.set(name, state);
      const repeated = repeats.count(`${name} ${state} ${why?.code}`);
      // Retries repeat the same states, so those are limited. A change for the better is always logged.
      if (repeated === null && (state === before || why !== null || state === "starting" || before === "broken"))
        return;
      const { level, message } = STATE_LINES[state];
      logger[level]({ event: "RequestRelayTurned", ...groupFields(group), state, ...why, repeated }, message);
    },
  };
}

function groupFields(group: RequestGroup) {
  return { namespace: group.namespace, context: contextName(group), queue: group.queue };
}

function fieldsOf(group: RequestGroup, { data, id, metadata, stream, type }: LoggedEvent) {
  const { causationId, correlationId, source, tenant } = metadata ?? {};
  const requestId = (data as { readonly id?: unknown } | null | undefined)?.id;
  return {
    ...groupFields(group),
    eventId: id,
    eventType: type,
    stream,
    tenant: short(tenant),
    requestId: short(requestId),
    correlationId: short(correlationId),
    causationId: short(causationId),
    source: short(source),
  };
}

/** Only short values, which can be names: anything else can be large, or a secret. */
function short(value: unknown): string | number | undefined {
  if (typeof value === "number") return value;
  return typeof value === "string" && value.length <= 256 ? value : undefined;
}
