import { systemClock, systemRandom } from "../core/clock.ts";
import type { EventLog } from "../ports/event-log.ts";
import type { RequestQueue } from "../ports/request-queue.ts";
import { USUAL_SUFFIXES } from "./request-filter.ts";
import type { RequestListener } from "./request-listener.ts";
import { EXECUTE_REQUEST, requestContext } from "./request-names.ts";
import { RequestRelay } from "./request-relay.ts";

/** Options of `createRequestRelay`. */
export interface RequestRelayOptions {
  readonly log: EventLog;
  readonly queue: RequestQueue;
  /** `<context>.<aggregate>` each, or an object with settings of that context alone. */
  readonly contexts: readonly (string | RequestContextOptions)[];
  /** Event types with one of these suffixes request a job even without `intent: "outbox"`. Default: Created, Queued. */
  readonly suffixes?: readonly string[];
  /** Where a context starts that has no checkpoint yet. Default: beginning. */
  readonly start?: "beginning" | "now";
  /** Identifies this process; unique among the processes that serve the same contexts. Default: a random UUID. */
  readonly owner?: string;
  /** How long after a process dies another one takes over its contexts. Default: 10,000. */
  readonly leaseMs?: number;
  /** Called for each dispatched, skipped and dead event, and when the state of a context changes. */
  readonly listener?: Partial<RequestListener>;
}

/** Settings of one context. */
export interface RequestContextOptions {
  readonly name: string;
  /** Prefix of the Redis keys and label of the metrics. Default: the name. */
  readonly namespace?: string;
  /** Default: the name. */
  readonly queue?: string;
  readonly jobName?: string;
  /** How long the marker of a dispatched event is kept; it prevents a second job. Default: 30 days. */
  readonly markerMs?: number;
}

/** A request relay that the caller starts and stops. */
export interface RunningRequestRelay {
  /** Dispatches until stopped. */
  start(): void;
  /** Dispatches all events up to now, except for contexts that another process owns. Rejects with the first error. */
  drain(): Promise<{ readonly dead: number; readonly elsewhere: readonly string[] }>;
  /** Releases the contexts. The log and the queue stay open; the caller owns them. */
  stop(): Promise<void>;
}

const DAY_MS = 86_400_000;
const LEASE_MS = 10_000;
const nothing = () => {};

/** Runs a request relay for one or many contexts inside your own process. Throws CONFIG_INVALID. */
export function createRequestRelay(options: RequestRelayOptions): RunningRequestRelay {
  const {
    contexts,
    leaseMs = LEASE_MS,
    listener = {},
    log,
    owner,
    queue,
    start = "beginning",
    suffixes = USUAL_SUFFIXES,
  } = options;
  const stopping = new AbortController();
  const self = owner ?? systemRandom.uuid();
  const relays = contexts.map((written) => {
    const {
      jobName = EXECUTE_REQUEST,
      markerMs = 30 * DAY_MS,
      name,
      ...own
    } = typeof written === "string" ? { name: written } : written;
    return new RequestRelay({
      group: { ...requestContext(name, own.namespace), queue: own.queue ?? name, jobName, markerMs },
      ...{ log, queue, leaseMs, start },
      filter: { suffixes },
      sinceMs: 0,
      copy: null,
      owner: self,
      clock: systemClock,
      random: systemRandom,
      listener: { dispatched: nothing, skipped: nothing, died: nothing, lag: nothing, turned: nothing, ...listener },
    });
  });
  let working: Promise<unknown> = Promise.resolve();
  return {
    start() {
      working = Promise.all(relays.map((relay) => relay.run(stopping.signal)));
    },
    async drain() {
      const drained = await Promise.all(relays.map((relay) => relay.drain(stopping.signal)));
      const elsewhere = contexts.filter((_, at) => drained[at]?.isElsewhere);
      return {
        dead: drained.reduce((sum, { dead }) => sum + dead, 0),
        elsewhere: elsewhere.map((context) => (typeof context === "string" ? context : context.name)),
      };
    },
    async stop() {
      stopping.abort();
      await working;
    },
  };
}
