import type { FoundTable } from "../config/find-tables.ts";
import { policyOf, type TablePolicy } from "../config/presets.ts";
import type { ServiceConfig } from "../config/service-config.ts";
import { systemClock } from "../core/clock.ts";
import { RelayError } from "../core/errors.ts";
import { DEFAULT_LIMITS, type Limits, type Timing } from "../core/limits.ts";
import type { Publisher } from "../ports/publisher.ts";
import type { QueueSource, QueueStore } from "../ports/queue-store.ts";
import type { Database } from "../postgres/pool.ts";
import { createRelay, type Relay, type SourcePolicy } from "../relay/relay.ts";
import type { Route } from "../routing/routes.ts";
import { openOutboxSource } from "../sources/openoutbox/openoutbox-source.ts";
import { postgresSource } from "../sources/postgres/postgres-source.ts";
import { BacklogWatch, type WatchedBacklog } from "../telemetry/backlog-watch.ts";
import type { PipelineEnds } from "../telemetry/metrics.ts";
import { type StoreWatch, watchedSource } from "../telemetry/watched-store.ts";

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
  readonly database: Database;
  readonly publisher: Publisher;
  /** At least one. */
  readonly tables: readonly FoundTable[];
  readonly watch: (ends: PipelineEnds) => StoreWatch;
}

export function buildEngine({ config, database, publisher, tables, watch }: EngineParts): Engine {
  const destination = destinationName(config);
  const backlogs: WatchedBacklog[] = [];
  const pipelines: PipelineEnds[] = [];
  const policies = new Map(tables.map((table) => [nameOf(table), policyOf(table.preset, config.policy)]));
  const sources = tables.map((table) =>
    watchedSource(sourceOf(table, config, database), (pipeline, store: QueueStore) => {
      const source = nameOf(table);
      const ends = { pipeline, source, destination };
      pipelines.push(ends);
      backlogs.push({ pipeline, source, schema: table.schema, backlog: () => store.backlog() });
      return watch(ends);
    }),
  );
  const byName = new Map(tables.map((table) => [nameOf(table), table]));
  const relay = createRelay({
    sources,
    destinations: { [destination]: publisher },
    policies: (source) => sourcePolicy(config, byName.get(source)!, policies.get(source)!),
    ...(config.ratePerSecond === null ? {} : { rates: { [destination]: config.ratePerSecond } }),
    limits: { ...config.limits, ...sharedLimits(tables.length) },
    timing: timingOf(config),
    lanes: config.lanes,
    instanceName: config.instanceName,
    ...(config.retentionMs === null ? {} : { retentionMs: config.retentionMs }),
  });
  const pollIntervalMs = Math.max(...[...policies.values()].map((policy) => policy.pollIntervalMs));
  return { relay, pipelines, backlog: new BacklogWatch(backlogs, systemClock), pollIntervalMs };
}

/** Progress belongs to a pipeline, and whoever takes some types only is another one. */
function destinationName({ destination, sources }: ServiceConfig): string {
  return sources.only.length === 0 ? destination.name : `${destination.name}[${sources.only.toSorted().join(",")}]`;
}

const NEVER_MS = 2_000_000_000;

/** What else waits in the tables of a relay for some types is the business of others, and is not told as a mistake. */
function timingOf({ sources, timing }: ServiceConfig): Partial<Timing> {
  return sources.only.length === 0 ? timing : { ...timing, unroutedMs: NEVER_MS };
}

const nameOf = ({ schema, table }: FoundTable): string => `${schema}.${table}`;

function sourceOf({ schema, table, preset }: FoundTable, config: ServiceConfig, database: Database): QueueSource {
  const { claimLeaseMs, columns } = config.sources;
  if (preset !== "openoutbox") return postgresSource({ database, table: { schema, table }, columns });
  const lease = claimLeaseMs === null ? {} : { leaseMs: claimLeaseMs };
  return openOutboxSource({ database, table: { schema, table }, relayId: config.service, ...lease });
}

/**
 * The process's memory is the same however many sources there are, and each has buffers of its own besides: together
 * their payloads in flight stay half of what one source may have alone. The number of events is shared less strictly,
 * because small transactions are slow ones.
 */
function sharedLimits(sources: number): Partial<Limits> {
  if (sources === 1) return {};
  const { inFlightBytesMax, inFlightEventsMax } = DEFAULT_LIMITS;
  return {
    inFlightEventsMax: Math.max(1_000, Math.floor((2 * inFlightEventsMax) / (sources + 1))),
    inFlightBytesMax: Math.max(512 * 1024, Math.floor(inFlightBytesMax / 2 / sources)),
  };
}

function sourcePolicy(config: ServiceConfig, table: FoundTable, policy: TablePolicy): SourcePolicy {
  return {
    routes: [routeOf(config, table, policy)],
    limits: { batchSize: policy.batchSize },
    timing: { pollIntervalMs: policy.pollIntervalMs },
  };
}

function routeOf(config: ServiceConfig, source: FoundTable, policy: TablePolicy): Route {
  const { sources, templates } = config;
  const { topic, key } = templates;
  const headers = Object.entries(templates.headers);
  const { idHeader, onExhausted, retry } = policy;
  return {
    destination: destinationName(config),
    ...(sources.only.length === 0 ? {} : { types: sources.only }),
    retry,
    onExhausted,
    ...(topic === null ? {} : { topic: (event) => topic(event, source) ?? lacking("TOPIC_TEMPLATE") }),
    ...(key === null ? {} : { key: (event) => key(event, source) }),
    ...(headers.length === 0 && idHeader === null
      ? {}
      : {
          headers: (event) => {
            const own: Record<string, string> = idHeader === null ? {} : { [idHeader]: event.id };
            for (const [name, template] of headers) {
              const value = template(event, source);
              if (value !== null) own[name] = value;
            }
            return own;
          },
        }),
  };
}

function lacking(template: string): never {
  throw new RelayError("EVENT_UNREADABLE", `The event lacks a value that ${template} needs.`);
}
