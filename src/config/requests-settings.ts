import { setting } from "./setting.ts";
import { duration, list, oneOf, text } from "./value-types.ts";

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

/** Requests in an event store: the log is the outbox, and every event that asks for it becomes a job. */
export const requestsSettings = {
  KURRENTDB_URL: setting(
    "requests.url",
    text().optional(),
    "The event store whose log is the outbox: kurrentdb://user:password@host:2113?tls=true, or esdb:// as before",
    { aliases: ["EVENTSTORE_URL"], secret: "address" },
  ),
  OUTBOX_CONTEXTS: setting(
    "requests.contexts",
    list().optional(),
    "The contexts whose requests are dispatched, as context.aggregate or context.aggregate?namespace=NAME&queue=NAME",
  ),
  KURRENTDB_SUBSCRIPTION: setting(
    "requests.subscription",
    oneOf(["all", "category"]).default("all"),
    "all filters the whole log by the names of streams; category reads $ce-context.aggregate.request, which needs that projection",
  ),
  REQUEST_SUFFIXES: setting(
    "requests.suffixes",
    list().optional(),
    "Ends of event types that ask for a job even without intent: outbox in the metadata, such as Created,Queued",
  ),
  REQUEST_CHECKPOINTS: setting(
    "requests.checkpoints",
    oneOf(["redis", "eventstore"]).default("redis"),
    "Where the checkpoint is kept: redis, or eventstore for a copy there too, so that a Redis that lost its memory is noticed",
  ),
  REQUEST_MARKER_TTL: setting(
    "requests.markerTtl",
    duration({ minMs: MINUTE, maxMs: 3_650 * DAY }).default(30 * DAY),
    "How long it is remembered that an event was dispatched",
  ),
};
