import { USUAL_SUFFIXES } from "../../requests/request-filter.ts";
import { setting } from "./setting.ts";
import { duration, list, oneOf, text } from "./value-types.ts";

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

/** Settings of requests in an event store: its log is the outbox, and every event that requests a job becomes one. */
export const requestsSettings = {
  KURRENTDB_URL: setting(
    "requests.url",
    text().optional(),
    "Event store whose log is the outbox: kurrentdb://user:password@host:2113?tls=true, or the older esdb://",
    { aliases: ["EVENTSTORE_URL"], secret: "address" },
  ),
  OUTBOX_CONTEXTS: setting(
    "requests.contexts",
    list().optional(),
    "Contexts whose requests to dispatch, as context.aggregate or context.aggregate?namespace=NAME&queue=NAME",
  ),
  KURRENTDB_SUBSCRIPTION: setting(
    "requests.subscription",
    oneOf(["all", "category"]).default("all"),
    "all: filters the whole log by stream names; category: reads $ce-context.aggregate.request, which needs that projection",
  ),
  REQUEST_SUFFIXES: setting(
    "requests.suffixes",
    list().default([...USUAL_SUFFIXES]),
    "Suffixes of event types that request a job even without intent: outbox in the metadata; none for the metadata alone",
  ),
  REQUEST_CHECKPOINTS: setting(
    "requests.checkpoints",
    oneOf(["redis", "eventstore"]).default("redis"),
    "Where to store the checkpoint: redis, or eventstore for a second copy there, which detects a Redis that lost its data",
  ),
  REQUEST_MARKER_TTL: setting(
    "requests.markerTtl",
    duration({ minMs: MINUTE, maxMs: 3_650 * DAY }).default(30 * DAY),
    "How long the relay remembers that it dispatched an event",
  ),
};
