import type { DestinationConfig } from "../config/destinations/destination-scheme.ts";
import { ConfigProblems } from "../config/reading/config-problems.ts";
import { filledRoute, type RouteConfig, restrictedTo } from "../config/routes-config.ts";
import type { ServiceConfig } from "../config/service-config.ts";
import { type FoundTable, sourceName } from "../config/sources/find-tables.ts";
import { isLog, policyOf, routePolicyOf, type TablePolicy } from "../config/sources/presets.ts";
import type { AnswerBook } from "../core/answer-times.ts";
import { systemClock } from "../core/clock.ts";
import { RelayError } from "../core/errors.ts";
import type { OutboxEvent } from "../core/event.ts";
import { DEFAULT_LIMITS, type Limits } from "../core/limits.ts";
import type { Configured } from "../operations/pipelines/orphans.ts";
import type { AttemptRecorder } from "../ports/attempt-recorder.ts";
import type { Publisher } from "../ports/publisher.ts";
import type { Backlog, PipelineSpec } from "../ports/queue-store.ts";
import { createRelay, type Relay, type RelayDestination, type SourcePolicy } from "../relay/relay.ts";
import type { Route } from "../routing/routes.ts";
import { BacklogWatch, countBacklogs, type WatchedSource } from "../telemetry/backlog-watch.ts";
import type { PipelineEnds } from "../telemetry/metrics/metrics.ts";
import type { OutboxStore } from "./outbox-store.ts";

/** A relay for one list of tables, with its backlog counts. When the list changes, a new engine replaces it. */
export interface Engine {
  readonly relay: Relay;
  readonly pipelines: readonly PipelineEnds[];
  readonly backlog: BacklogWatch;
  /** The longest poll interval of all sources. */
  readonly pollIntervalMs: number;
}

/** What an engine is built from. */
interface EngineParts {
  readonly config: ServiceConfig;
  readonly store: OutboxStore;
  /** By configured destination name. */
  readonly publishers: ReadonlyMap<string, Publisher>;
  /** Never empty. */
  readonly tables: readonly FoundTable[];
  readonly recorder: AttemptRecorder | null;
  readonly answers: AnswerBook;
}

/** Builds the relay for these tables and the watches around it. */
export function buildEngine(parts: EngineParts): Engine {
  const { answers, config, store: outbox, publishers, recorder, tables } = parts;
  const watched: WatchedSource[] = [];
  const pipelines: PipelineEnds[] = [];
  const policies = new Map(tables.map((table) => [sourceName(table), policyOf(table.preset, config.policy)]));
  const sources = tables.map((table) => {
    const source = sourceName(table);
    const inner = outbox.source(table);
    const own: PipelineEnds[] = [];
    const backlogs = new Map<string, () => Promise<Backlog>>();
    watched.push({ source, schema: table.schema, pipelines: own, count: () => countBacklogs(inner, backlogs) });
    const pipeline = (spec: PipelineSpec) => {
      const store = inner.pipeline(spec);
      const ends = { pipeline: spec.name, source, destination: spec.name.slice(`${source}->`.length) };
      pipelines.push(ends);
      own.push(ends);
      backlogs.set(spec.name, () => store.backlog());
      return store;
    };
    return { ...inner, pipeline };
  });
  const byName = new Map(tables.map((table) => [sourceName(table), table]));
  const relay = createRelay({
    sources,
    destinations: destinationsOf(config, publishers),
    policies: (source) => sourcePolicy(config, byName.get(source)!, policies.get(source)!),
    limits: { ...config.limits, ...sharedLimits(pipelineCount(config, tables)) },
    timing: config.timing,
    lanes: config.lanes,
    instanceName: config.instanceName,
    service: config.service,
    answers: { of: (destination) => answers.of(plainName(destination)) },
    ...(recorder === null ? {} : { recorder }),
    ...(config.retentionMs === null ? {} : { retentionMs: config.retentionMs }),
  });
  const pollIntervalMs = Math.max(...[...policies.values()].map((policy) => policy.pollIntervalMs));
  return { relay, pipelines, backlog: new BacklogWatch(watched, systemClock), pollIntervalMs };
}

function destinationsOf(
  config: ServiceConfig,
  publishers: ReadonlyMap<string, Publisher>,
): Readonly<Record<string, RelayDestination>> {
  const entries = config.destinations.flatMap((it) => {
    const publisher = publishers.get(it.name);
    return publisher === undefined ? [] : [[pipelineEnd(it.name, config), destinationOf(it, publisher)] as const];
  });
  return Object.fromEntries(entries);
}

function destinationOf(
  { addresses, kind, limits, ratePerSecond }: DestinationConfig,
  publisher: Publisher,
): RelayDestination {
  return {
    publisher,
    limits,
    // Without secrets: its kind and its hosts.
    address: [kind, addresses.toSorted().join(",")].filter((part) => part !== "").join(" "),
    ratePerSecond: ratePerSecond ?? undefined,
  };
}

/**
 * Progress belongs to a pipeline, so a relay that delivers only some types of a destination needs a pipeline of its
 * own. Exception: an intent's own destination has one type, so the relay of that intent alone and the relay of all
 * intents share the pipeline and its lanes.
 */
export function pipelineEnd(destination: string, { routes, sources }: ServiceConfig): string {
  const all = routes.filter((route) => route.destination === destination);
  const typesOf = (some: readonly RouteConfig[]) => JSON.stringify(some.map(({ types }) => types));
  const isWhole = typesOf(restrictedTo(sources.only, all)) === typesOf(all);
  return isWhole ? destination : `${destination}[${sources.only.toSorted().join(",")}]`;
}

/** The destination's configured name, without the types that a relay for some of them adds. */
export function plainName(destination: string): string {
  return destination.replace(/\[.*\]$/s, "");
}

function pipelineCount(config: ServiceConfig, tables: readonly FoundTable[]): number {
  const ends = tables.map((table) => new Set(routesOf(config, table).map(({ destination }) => destination)).size);
  return ends.reduce((sum, count) => sum + count, 0);
}

/**
 * All pipelines share the bytes in flight, so that the process's memory does not grow with their number. The number of
 * events is divided less strictly, because small transactions are slow.
 */
function sharedLimits(pipelines: number): Partial<Limits> {
  if (pipelines <= 1) return {};
  const { inFlightBytesMax, inFlightEventsMax } = DEFAULT_LIMITS;
  return {
    inFlightEventsMax: Math.max(1_000, Math.floor((2 * inFlightEventsMax) / (pipelines + 1))),
    inFlightBytesMax: Math.max(512 * 1024, Math.floor(inFlightBytesMax / pipelines)),
  };
}

/** The routes of a table: those of a log by its subscriber, all others by OUTBOX_ROUTES. */
export function routesOf({ routes, sources, subscribers }: ServiceConfig, { subscriber }: FoundTable) {
  if (subscriber === null) return restrictedTo(sources.only, routes);
  return subscribers.filter(({ name }) => name === subscriber).map(({ route }) => route);
}

/** The routes of a table as its pipelines use them, by the names that `pipelineEnd` gives to the destinations. */
export function tableRoutes(config: ServiceConfig, table: FoundTable): readonly Route[] {
  return routesOf(config, table).map((route) => ofPreset(config, table, route));
}

/** The pipelines and sources that these settings name. */
export function configuredPipelines(config: ServiceConfig, tables: readonly FoundTable[]): Configured {
  const names = tables.flatMap((table) =>
    routesOf(config, table).map(({ destination }) => `${sourceName(table)}->${pipelineEnd(destination, config)}`),
  );
  return {
    sources: new Set(tables.map((table) => sourceName({ ...table, subscriber: null }))),
    pipelines: new Set(names),
  };
}

/** Throws when subscribers are configured and one of the tables is a queue without a route. */
export function requireRoutes(config: ServiceConfig, tables: readonly FoundTable[]): void {
  const unrouted = tables
    .filter(({ preset }) => !isLog(preset))
    .filter((table) => routesOf(config, table).length === 0);
  if (unrouted.length === 0 || config.subscribers.length === 0) return;
  throw new ConfigProblems(
    unrouted.map(
      (table) =>
        `${sourceName(table)} is a queue and cannot have OUTBOX_SUBSCRIBERS: each event of a queue is marked as delivered once, for one reader. Set OUTBOX_ROUTES for it, or exclude the table`,
    ),
  );
}

function sourcePolicy(config: ServiceConfig, table: FoundTable, policy: TablePolicy): SourcePolicy {
  return {
    routes: tableRoutes(config, table),
    // Two publishes on the wire could overtake each other.
    limits: { batchSize: policy.batchSize, ...(table.isSerial ? { publishesPerLane: 1 } : {}) },
    timing: { pollIntervalMs: policy.pollIntervalMs },
  };
}

/** The route, completed by what the table's preset adds. */
function ofPreset(config: ServiceConfig, table: FoundTable, route: RouteConfig): Route {
  const { idHeader, onExhausted, retry } = routePolicyOf(table.preset, config.policy, route.policy);
  const filled = filledRoute(route, table, lacking);
  const { headers } = filled;
  return {
    ...(table.isDebezium ? { topic: debeziumTopic } : {}),
    ...filled,
    destination: pipelineEnd(route.destination, config),
    retry,
    onExhausted,
    ...(idHeader === null ? {} : { headers: (event) => ({ [idHeader]: event.id, ...headers?.(event) }) }),
  };
}

/** Debezium's default topic, from the aggregate's type. */
function debeziumTopic({ headers }: OutboxEvent): string {
  return `outbox.event.${headers.aggregatetype ?? lacking("Debezium's topic")}`;
}

function lacking(what: string): never {
  throw new RelayError("EVENT_UNREADABLE", `The event lacks a value that ${what} needs.`);
}
