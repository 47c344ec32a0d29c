import type { Clock } from "../core/clock.ts";
import type { LoggedEvent } from "../ports/event-log.ts";
import type { RequestGroup } from "../ports/request-queue.ts";
import type { RequestListener, RequestState } from "../requests/request-listener.ts";
import { contextName } from "../requests/request-names.ts";
import { bulkLogger } from "./bulk-logger.ts";
import type { Logger } from "./logger.ts";
import { Repeats } from "./repeats.ts";

const REPEAT_MS = 60_000;

const STATE_LINES: Readonly<
  Record<RequestState, { readonly level: "info" | "warn" | "error"; readonly message: string }>
> = {
  starting: { level: "info", message: "a context is about to be relayed" },
  standby: { level: "info", message: "another relay dispatches for this context; this one stands by" },
  running: { level: "info", message: "requests of this context are dispatched" },
  broken: { level: "error", message: "requests cannot be dispatched at present; it is tried again" },
  halted: { level: "error", message: "requests of this context are not dispatched any more until somebody helps" },
  stopped: { level: "info", message: "a context was handed over" },
};

/** Every line about a request has the same fields, so that one can be followed from its command to its outcome. */
export function logRequests(logger: Logger, clock: Clock): RequestListener {
  const repeats = new Repeats(clock, REPEAT_MS);
  const states = new Map<string, RequestState>();
  const loggers = new Map<RequestGroup, Logger>();
  // The line of every request: what is the same in all of a group's is put into words once.
  const loggerOf = (group: RequestGroup) => {
    let own = loggers.get(group);
    if (own === undefined) {
      own = bulkLogger(logger, { event: "RequestDispatched", ...groupFields(group), outcome: "dispatched" });
      loggers.set(group, own);
    }
    return own;
  };
  return {
    dispatched(group, { id, metadata, stream, type }, { delayMs, requestId, tenant }) {
      const own = loggerOf(group);
      if (own.level !== logger.level) own.level = logger.level;
      const fields = {
        eventId: id,
        eventType: type,
        stream,
        tenant,
        requestId,
        correlationId: short(metadata?.correlationId),
        causationId: short(metadata?.causationId),
        source: short(metadata?.source),
        jobId: id,
        delayMs: delayMs > 0 ? delayMs : undefined,
      };
      own.info(fields, "a request was dispatched");
    },
    skipped(group, event, reason, link) {
      if (event === null) {
        logger.warn(
          { event: "RequestSkipped", ...groupFields(group), link, outcome: reason },
          "a link leads to no event",
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
      logger.error({ event: "RequestDied", ...fields }, "an event asks for a job and cannot become one");
    },
    lag() {},
    turned(group, state, why) {
      const name = contextName(group);
      const before = states.get(name);
      states.set(name, state);
      const repeated = repeats.count(`${name} ${state} ${why?.code}`);
      // Whoever is tried again goes through the same states; a change for the better is always news.
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

/** Only what can be a name: whatever else stands there may be large, or a secret. */
function short(value: unknown): string | number | undefined {
  if (typeof value === "number") return value;
  return typeof value === "string" && value.length <= 256 ? value : undefined;
}
