import { systemClock, systemRandom } from "../core/clock.ts";
import type { EventLog } from "../ports/event-log.ts";
import type { RequestQueue } from "../ports/request-queue.ts";
import type { RequestListener } from "./request-listener.ts";
import { EXECUTE_REQUEST, requestContext } from "./request-names.ts";
import { RequestRelay } from "./request-relay.ts";

export interface RequestRelayOptions {
  readonly log: EventLog;
  readonly queue: RequestQueue;
  /** `<context>.<aggregate>` each; the others are theirs alone. */
  readonly contexts: readonly (string | RequestContextOptions)[];
  /** Ends of event types that ask for a job even without `intent: "outbox"`. */
  readonly suffixes?: readonly string[];
  /** Where whoever never dispatched begins. Default: beginning. */
  readonly start?: "beginning" | "now";
  /** Of all processes that serve the same contexts, each has a name of its own. Default: a random one. */
  readonly owner?: string;
  /** How long after the end of one process another one takes its contexts. Default: 10,000. */
  readonly leaseMs?: number;
  /** Hears what is dispatched, skipped and dead, and how each context stands. */
  readonly listener?: Partial<RequestListener>;
}

export interface RequestContextOptions {
  readonly name: string;
  /** Of keys and metrics. Default: the name. */
  readonly namespace?: string;
  /** Default: the name. */
  readonly queue?: string;
  readonly jobName?: string;
  /** How long it is remembered that an event was dispatched. Default: 30 days. */
  readonly markerMs?: number;
}

export interface RunningRequestRelay {
  /** Dispatches until stopped. */
  start(): void;
  /** Dispatches what is there, but for contexts that another process has. Rejects with the first trouble. */
  drain(): Promise<{ readonly dead: number; readonly elsewhere: readonly string[] }>;
  /** Hands the contexts over; log and queue stay open, they are the caller's. */
  stop(): Promise<void>;
}

const DAY_MS = 86_400_000;
const LEASE_MS = 10_000;
const nothing = () => {};

/** A request relay inside a process of your own, one or many contexts. Throws CONFIG_INVALID. */
export function createRequestRelay(options: RequestRelayOptions): RunningRequestRelay {
  const {
    contexts,
    leaseMs = LEASE_MS,
    listener = {},
    log,
    owner,
    queue,
    start = "beginning",
    suffixes = [],
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
