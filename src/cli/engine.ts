import { ConfigProblems } from "../config/config-problems.ts";
import type { DestinationConfig } from "../config/destinations/destination-scheme.ts";
import { type FoundTable, sourceName } from "../config/find-tables.ts";
import { isLog, policyOf, routePolicyOf, type TablePolicy } from "../config/presets.ts";
import { filledRoute, type RouteConfig, restrictedTo } from "../config/routes-config.ts";
import type { ServiceConfig } from "../config/service-config.ts";
import { systemClock } from "../core/clock.ts";
import { RelayError } from "../core/errors.ts";
import type { OutboxEvent } from "../core/event.ts";
import { DEFAULT_LIMITS, type Limits } from "../core/limits.ts";
import type { AttemptRecorder } from "../ports/attempt-recorder.ts";
import type { Publisher } from "../ports/publisher.ts";
import type { QueueStore } from "../ports/queue-store.ts";
import { createRelay, type Relay, type SourcePolicy } from "../relay/relay.ts";
import type { Route } from "../routing/routes.ts";
import { BacklogWatch, type WatchedBacklog } from "../telemetry/backlog-watch.ts";
import type { PipelineEnds } from "../telemetry/metrics.ts";
import { type StoreWatch, watchedSource } from "../telemetry/watched-store.ts";
import type { OutboxStore } from "./outbox-store.ts";

/** A relay for a list of tables, with what watches it. When the list changes, another one takes its place. */
export interface Engine {
  readonly relay: Relay;
  readonly pipelines: readonly PipelineEnds[];
  readonly backlog: BacklogWatch;
  /** The longest of all sources. */
  readonly pollIntervalMs: number;
}

export interface EngineParts {
  readonly config: ServiceConfig;
  readonly store: OutboxStore;
  /** By the names of the configured destinations. */
  readonly publishers: ReadonlyMap<string, Publisher>;
  /** At least one. */
  readonly tables: readonly FoundTable[];
  readonly watch: (ends: PipelineEnds) => StoreWatch;
  readonly recorder: AttemptRecorder | null;
}

export function buildEngine({ config, store: outbox, publishers, recorder, tables, watch }: EngineParts): Engine {
  const backlogs: WatchedBacklog[] = [];
  const pipelines: PipelineEnds[] = [];
  const policies = new Map(tables.map((table) => [sourceName(table), policyOf(table.preset, config.policy)]));
  const sources = tables.map((table) =>
    watchedSource(outbox.source(table), (pipeline, store: QueueStore) => {
      const source = sourceName(table);
      const ends = { pipeline, source, destination: pipeline.slice(`${source}->`.length) };
      pipelines.push(ends);
      backlogs.push({ pipeline, source, schema: table.schema, backlog: () => store.backlog() });
      return watch(ends);
    }),
  );
  const byName = new Map(tables.map((table) => [sourceName(table), table]));
  const relay = createRelay({
    sources,
    ...destinationsOf(config, publishers),
    policies: (source) => sourcePolicy(config, byName.get(source)!, policies.get(source)!),
    limits: { ...config.limits, ...sharedLimits(pipelineCount(config, tables)) },
    timing: config.timing,
    lanes: config.lanes,
    instanceName: config.instanceName,
    service: config.service,
    addresses: addressesOf(config),
    ...(recorder === null ? {} : { recorder }),
    ...(config.retentionMs === null ? {} : { retentionMs: config.retentionMs }),
  });
  const pollIntervalMs = Math.max(...[...policies.values()].map((policy) => policy.pollIntervalMs));
  return { relay, pipelines, backlog: new BacklogWatch(backlogs, systemClock), pollIntervalMs };
}

function destinationsOf(config: ServiceConfig, publishers: ReadonlyMap<string, Publisher>) {
  const used = config.destinations.filter(({ name }) => publishers.has(name));
  const entries = <T>(value: (destination: DestinationConfig) => T | null | undefined) =>
    Object.fromEntries(
      used.flatMap((it) => {
        const own = value(it);
        return own === null || own === undefined ? [] : [[pipelineEnd(it.name, config), own]];
      }),
    );
  return {
    destinations: entries(({ name }) => publishers.get(name)),
    rates: entries(({ ratePerSecond }) => ratePerSecond),
    destinationLimits: entries(({ limits }) => limits),
  };
}

/** Where each destination leads, without secrets: its kind and its hosts. */
function addressesOf(config: ServiceConfig): Readonly<Record<string, string>> {
  return Object.fromEntries(
    config.destinations.map(({ addresses, kind, name }) => [
      pipelineEnd(name, config),
      [kind, addresses.toSorted().join(",")].filter((part) => part !== "").join(" "),
    ]),
  );
}

/**
 * Progress belongs to a pipeline, and whoever takes some of its types only is another one. An intent's own destination
 * has one type: then the relay of that intent alone and the relay of all share the pipeline and its lanes.
 */
function pipelineEnd(destination: string, { routes, sources }: ServiceConfig): string {
  const all = routes.filter((route) => route.destination === destination);
  const typesOf = (some: readonly RouteConfig[]) => JSON.stringify(some.map(({ types }) => types));
  const isWhole = typesOf(restrictedTo(sources.only, all)) === typesOf(all);
  return isWhole ? destination : `${destination}[${sources.only.toSorted().join(",")}]`;
}

/** Of a pipeline's end: without the types that a relay for some of them adds to it. */
export function plainName(destination: string): string {
  return destination.replace(/\[.*\]$/s, "");
}

function pipelineCount(config: ServiceConfig, tables: readonly FoundTable[]): number {
  const ends = tables.map((table) => new Set(routesOf(config, table).map(({ destination }) => destination)).size);
  return ends.reduce((sum, count) => sum + count, 0);
}

/**
 * The process's memory is the same however many pipelines there are: they share the bytes in flight. The number of
 * events is shared less strictly, because small transactions are slow ones.
 */
function sharedLimits(pipelines: number): Partial<Limits> {
  if (pipelines <= 1) return {};
  const { inFlightBytesMax, inFlightEventsMax } = DEFAULT_LIMITS;
  return {
    inFlightEventsMax: Math.max(1_000, Math.floor((2 * inFlightEventsMax) / (pipelines + 1))),
    inFlightBytesMax: Math.max(512 * 1024, Math.floor(inFlightBytesMax / pipelines)),
  };
}

/** Where the events of a table go: those of a log to its subscriber, all others by the routes. */
export function routesOf({ routes, sources, subscribers }: ServiceConfig, { subscriber }: FoundTable) {
  if (subscriber === null) return restrictedTo(sources.only, routes);
  return subscribers.filter(({ name }) => name === subscriber).map(({ route }) => route);
}

/** Throws where subscribers are configured and a table cannot have any. */
export function requireRoutes(config: ServiceConfig, tables: readonly FoundTable[]): void {
  const lost = tables.filter(({ preset }) => !isLog(preset)).filter((table) => routesOf(config, table).length === 0);
  if (lost.length === 0 || config.subscribers.length === 0) return;
  throw new ConfigProblems(
    lost.map(
      (table) =>
        `${sourceName(table)} is a queue and can have no OUTBOX_SUBSCRIBERS: an event of a queue is marked and belongs to exactly one. Say with OUTBOX_ROUTES where its events go, or leave the table out`,
    ),
  );
}

function sourcePolicy(config: ServiceConfig, table: FoundTable, policy: TablePolicy): SourcePolicy {
  return {
    routes: routesOf(config, table).map((route) => ofPreset(config, table, route)),
    limits: { batchSize: policy.batchSize },
    timing: { pollIntervalMs: policy.pollIntervalMs },
  };
}

/** The route with what the table's preset adds to it. */
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

/** By the kind of the aggregate, unless somebody says otherwise. */
function debeziumTopic({ headers }: OutboxEvent): string {
  return `outbox.event.${headers.aggregatetype ?? lacking("Debezium's topic")}`;
}

function lacking(what: string): never {
  throw new RelayError("EVENT_UNREADABLE", `The event lacks a value that ${what} needs.`);
}
