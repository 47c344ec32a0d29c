import { reasonOf } from "../../core/errors.ts";
import type { RequestGroup } from "../../ports/request-queue.ts";
import { type BullmqPublisherOptions, queueFault } from "../../publishers/bullmq/bullmq-config.ts";
import type { RequestFilter } from "../../requests/request-filter.ts";
import { EXECUTE_REQUEST, requestContext } from "../../requests/request-names.ts";
import type { DestinationConfig } from "../destinations/destination-scheme.ts";
import { instanceLeaseOf } from "../lease-timing.ts";
import type { Settings } from "../settings/settings.ts";
import { logStart } from "./log-start.ts";

/** An event store instead of the database, and the contexts to relay from it. */
export interface RequestsConfig {
  readonly log: { readonly url: string; readonly way: "all" | "category" };
  readonly groups: readonly RequestGroup[];
  readonly filter: RequestFilter;
  readonly start: "beginning" | "now";
  /** Wall time; older events are skipped. */
  readonly sinceMs: number;
  /** Whether the checkpoint is also written to the event store. */
  readonly isCopied: boolean;
  readonly leaseMs: number;
  readonly queue: BullmqPublisherOptions;
  readonly destination: DestinationConfig;
}

const DATABASE_SETTINGS = [
  ...(["DATABASE_URL", "OUTBOX_STORE", "OUTBOX_SCHEMAS", "OUTBOX_TABLE", "OUTBOX_MANAGED"] as const),
  ...(["OUTBOX_EVENT_TABLES", "OUTBOX_WAL", "OUTBOX_SUBSCRIBERS", "OUTBOX_INTENTS", "OUTBOX_ROUTES"] as const),
  ...(["RETENTION"] as const),
];
const PARAMETERS = ["namespace", "queue"];
const EXAMPLE = "payment.payout?namespace=pay&queue=payouts";

/** Null if the events do not come from an event store, or when `problems` say what is wrong. */
export function requestsConfig(
  settings: Settings,
  destinations: readonly DestinationConfig[],
  problems: string[],
): RequestsConfig | null {
  const { KURRENTDB_URL: url, OUTBOX_CONTEXTS: contexts = [] } = settings;
  if (url === undefined) {
    if (contexts.length > 0)
      problems.push("OUTBOX_CONTEXTS is set but KURRENTDB_URL is not: set it to the event store's address");
    return null;
  }
  const problemsBefore = problems.length;
  if (!/^(?:kurrentdb|kurrent|esdb|eventstoredb)(?:\+discover)?:\/\/[^/]/i.test(url)) {
    problems.push("KURRENTDB_URL is not an event store address: write kurrentdb://host:2113?tls=true");
  }
  for (const other of DATABASE_SETTINGS) {
    if (settings[other] !== undefined) {
      problems.push(
        `KURRENTDB_URL and ${other} are both set: a relay reads either an event store or an outbox, keep one of them`,
      );
    }
  }
  if (contexts.length === 0)
    problems.push(`OUTBOX_CONTEXTS is missing: name the contexts to relay, such as ${EXAMPLE}`);
  const destination = destinations[0];
  if (destination !== undefined && (destinations.length > 1 || destination.kind !== "bullmq")) {
    problems.push(
      "OUTBOX_DESTINATION must be a single BullMQ destination with KURRENTDB_URL: write bullmq+redis://host:6379/0",
    );
  }
  const start = logStart(settings.LOG_START, (why) => problems.push(`LOG_START ${why}`)) ?? "beginning";
  const queue = (destination?.options ?? { hosts: [] }) as BullmqPublisherOptions;
  const groups = contexts.flatMap((written) => groupOf(written, settings, queue, problems) ?? []);
  refuseDuplicates(groups, problems);
  if (destination === undefined || problems.length > problemsBefore) return null;
  return {
    log: { url, way: settings.KURRENTDB_SUBSCRIPTION },
    groups,
    filter: { suffixes: settings.REQUEST_SUFFIXES.filter((it) => it !== "none") },
    start: start === "now" ? "now" : "beginning",
    sinceMs: start instanceof Date ? start.getTime() : 0,
    isCopied: settings.REQUEST_CHECKPOINTS === "eventstore",
    leaseMs: instanceLeaseOf(settings),
    queue,
    destination,
  };
}

function groupOf(
  written: string,
  settings: Settings,
  { jobName, queue }: BullmqPublisherOptions,
  problems: string[],
): RequestGroup | null {
  const [name = "", query = ""] = written.split(/\?(.*)/s);
  const parameters = new URLSearchParams(query);
  for (const unknown of [...parameters.keys()].filter((it) => !PARAMETERS.includes(it))) {
    problems.push(
      `OUTBOX_CONTEXTS has the unknown parameter ${unknown} at ${name}: known are ${PARAMETERS.join(" and ")}`,
    );
  }
  try {
    const context = requestContext(name, parameters.get("namespace") ?? name);
    const ownQueue = parameters.get("queue") ?? queue ?? name;
    const fault = queueFault(ownQueue);
    if (fault !== null) problems.push(`OUTBOX_CONTEXTS: ${name}: ${fault}`);
    return { ...context, queue: ownQueue, jobName: jobName ?? EXECUTE_REQUEST, markerMs: settings.REQUEST_MARKER_TTL };
  } catch (error) {
    problems.push(`OUTBOX_CONTEXTS: ${reasonOf(error).replace(/\.? \[CONFIG_INVALID\].*$/, "")}`);
    return null;
  }
}

/** Checkpoints are stored by name: two contexts with the same name would take each other's events. */
function refuseDuplicates(groups: readonly RequestGroup[], problems: string[]): void {
  const names = groups.map(({ aggregate, context }) => `${context}.${aggregate}`);
  for (const name of new Set(names.filter((it, at) => names.indexOf(it) !== at))) {
    problems.push(`OUTBOX_CONTEXTS has ${name} twice: keep one of them`);
  }
}
