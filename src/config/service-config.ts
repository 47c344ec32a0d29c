import { hostname } from "node:os";
import { reasonOf } from "../core/errors.ts";
import type { Limits, Timing } from "../core/limits.ts";
import type { ColumnNames } from "../postgres/column-names.ts";
import { parseTableName, quoteIdentifier } from "../postgres/identifiers.ts";
import type { DatabaseOptions } from "../postgres/pool.ts";
import { type AccessConfig, accessConfig, accessSecrets, accessWarnings } from "./access-config.ts";
import { clearTextWarnings } from "./clear-text-warnings.ts";
import type { DestinationConfig } from "./destinations/destination-scheme.ts";
import { databaseTimeoutsFor, instanceLeaseOf, publishTimeoutFor, timingFor } from "./lease-timing.ts";
import { ConfigProblems } from "./reading/config-problems.ts";
import type { ReadSettings } from "./reading/read-settings.ts";
import { pauseMs, type RouteConfig } from "./routes-config.ts";
import { deliveredPerSecond } from "./settings/record-settings.ts";
import type { Settings } from "./settings/settings.ts";
import { durationText } from "./settings/value-types.ts";
import { columnsConfig } from "./sources/columns-config.ts";
import { databaseConfig, databaseWarnings } from "./sources/database-config.ts";
import type { LoadedIntentRelay } from "./sources/intent-relays.ts";
import { intentSecrets, routingConfig } from "./sources/intents-config.ts";
import { type LogsConfig, logsConfig, type SubscriberConfig, subscribersConfig } from "./sources/logs-config.ts";
import type { ExplicitPolicy } from "./sources/presets.ts";
import { type RedisStoreConfig, redisStoreConfig } from "./sources/redis-store-config.ts";
import { type RequestsConfig, requestsConfig } from "./sources/requests-config.ts";
import { type TelemetryConfig, telemetryConfig, telemetryWarnings } from "./telemetry-config.ts";

/**
 * The validated configuration of the service. The rest of the program sees only this, whatever the origin of a value.
 */
export interface ServiceConfig {
  readonly service: string;
  readonly instanceName: string;
  readonly database: DatabaseOptions;
  /** The Redis outbox; null when the events are in the database. */
  readonly store: RedisStoreConfig | null;
  /** Set when the events come from an event store; database settings do not apply then. */
  readonly requests: RequestsConfig | null;
  readonly http: { readonly host: string; readonly port: number };
  readonly access: AccessConfig;
  readonly log: { readonly level: Settings["LOG_LEVEL"]; readonly events: Settings["LOG_EVENTS"] };
  readonly telemetry: TelemetryConfig;
  readonly sources: {
    readonly schemas: readonly string[] | "*";
    readonly tables: readonly string[];
    readonly columns: ColumnNames;
    /** The lease of claims in an Open Outbox table; null for its own default. */
    readonly claimLeaseMs: number | null;
    /** Patterns of the types to deliver; empty for all. */
    readonly only: readonly string[];
  };
  /** Never empty, unless the command works without one. */
  readonly destinations: readonly DestinationConfig[];
  /** For queues, and for logs without subscribers. */
  readonly routes: readonly RouteConfig[];
  readonly logs: LogsConfig;
  readonly subscribers: readonly SubscriberConfig[];
  readonly policy: ExplicitPolicy;
  readonly lanes: number;
  readonly limits: Partial<Limits>;
  readonly timing: Partial<Timing>;
  readonly retentionMs: number | null;
  readonly record: {
    /** Delivered events recorded per second; Infinity for all. */
    readonly deliveredPerSecond: number;
    readonly retentionMs: number;
    /** Names of headers and fields that are never shown. */
    readonly redact: readonly string[];
  };
  readonly shutdownMs: number;
  /** Values that no log line may show. */
  readonly secrets: readonly string[];
  readonly warnings: readonly string[];
}

/** Validates the settings as a whole. Throws ConfigProblems with all problems at once. */
export function serviceConfig(
  { settings, origins, secrets, warnings }: ReadSettings,
  relays: readonly LoadedIntentRelay[] = [],
  { mayLackDestination = false }: { readonly mayLackDestination?: boolean } = {},
): ServiceConfig {
  const problems: string[] = [];
  const leaseMs = instanceLeaseOf(settings);
  const usualTable = usualTableOf(origins.get("DATABASE_URL")?.name ?? "");
  const { destinations, routes } = routingConfig(
    settings,
    relays,
    problems,
    mayLackDestination && settings.KURRENTDB_URL === undefined,
  );
  // Without a database, problems with its settings do not matter.
  const ofDatabase = settings.OUTBOX_STORE === undefined && settings.KURRENTDB_URL === undefined ? problems : [];
  const config = {
    service: settings.SERVICE_NAME,
    instanceName: settings.RELAY_ID ?? `${hostname()}/${process.pid}`,
    database: { ...databaseConfig(settings, ofDatabase), timeouts: databaseTimeoutsFor(leaseMs) },
    http: { host: settings.HOST, port: settings.PORT },
    access: accessConfig(settings, problems),
    log: { level: settings.LOG_LEVEL, events: settings.LOG_EVENTS },
    telemetry: telemetryConfig(settings, problems),
    sources: sourcesConfig(settings, usualTable, ofDatabase),
    store: redisStoreConfig(settings, problems),
    requests: requestsConfig(settings, destinations, problems),
    destinations,
    routes,
    logs: logsConfig(settings, problems),
    subscribers: subscribersConfig(settings, destinations, problems),
    policy: explicitPolicy(settings, problems),
    lanes: settings.LANES,
    limits: limitsConfig(settings),
    timing: timingFor(leaseMs, settings.SHUTDOWN_TIMEOUT_MS, publishTimeoutOf(settings, leaseMs, problems)),
    retentionMs: settings.RETENTION ?? null,
    record: {
      deliveredPerSecond: deliveredPerSecond(settings.RECORD_DELIVERED),
      retentionMs: settings.RECORD_RETENTION,
      redact: settings.REDACT ?? [],
    },
    shutdownMs: settings.SHUTDOWN_TIMEOUT_MS,
    secrets: [...secrets, ...accessSecrets(settings), ...intentSecrets(relays)],
  };
  checked(problems, "DATABASE_SCHEMA", () => quoteIdentifier(settings.DATABASE_SCHEMA));
  if (problems.length > 0) throw new ConfigProblems(problems);
  const remarks = destinations.flatMap((destination) => destination.warnings);
  const own = [
    ...accessWarnings(settings),
    ...databaseWarnings(settings),
    ...clearTextWarnings(settings),
    ...telemetryWarnings(settings),
  ];
  return { ...config, warnings: [...warnings, ...own, ...remarks] };
}

/** Deployments of other relays have its variables and its table, whose name they never had to set. */
function usualTableOf(databaseUrlName: string): string | null {
  if (databaseUrlName.startsWith("STORAGE_URL")) return "public.openoutbox_events";
  return /^ConnectionStrings(?:__|:)EventStore/i.test(databaseUrlName) ? "public.waiting_room_outbox" : null;
}

function limitsConfig({ REAP_BATCH_SIZE }: Settings): Partial<Limits> {
  return REAP_BATCH_SIZE === undefined ? {} : { reapRowsMax: REAP_BATCH_SIZE };
}

function publishTimeoutOf(settings: Settings, leaseMs: number, problems: string[]): number {
  const { PUBLISH_TIMEOUT } = settings;
  if (PUBLISH_TIMEOUT === undefined) return publishTimeoutFor(leaseMs);
  if (PUBLISH_TIMEOUT >= leaseMs) {
    // A publish that outlives the lease could overlap with the new owner's publish of the same events.
    const setting = settings.INSTANCE_LEASE === undefined ? "LEASE_TIMEOUT" : "INSTANCE_LEASE";
    const [publish, lease] = [durationText(PUBLISH_TIMEOUT), durationText(leaseMs)];
    problems.push(`PUBLISH_TIMEOUT (${publish}) must be below ${setting} (${lease}): lower it, or raise ${setting}`);
  }
  return PUBLISH_TIMEOUT;
}

function sourcesConfig(settings: Settings, usualTable: string | null, problems: string[]): ServiceConfig["sources"] {
  const { OUTBOX_EVENT_TABLES, OUTBOX_MANAGED, OUTBOX_SCHEMAS, OUTBOX_TABLE, OUTBOX_WAL } = settings;
  const sources = [OUTBOX_SCHEMAS, OUTBOX_TABLE, OUTBOX_MANAGED, OUTBOX_EVENT_TABLES, OUTBOX_WAL];
  const columns = columnsConfig(settings.OUTBOX_COLUMNS, problems);
  const claimLeaseMs = settings.LEASE_TIMEOUT ?? null;
  const own = { columns, claimLeaseMs, only: [...new Set(settings.OUTBOX_ONLY)] };
  const isAll = OUTBOX_SCHEMAS?.includes("*") ?? false;
  if (isAll && OUTBOX_SCHEMAS!.length > 1) {
    problems.push("OUTBOX_SCHEMAS has * and other names: write only *, which means every schema with an outbox table");
  }
  for (const schema of OUTBOX_SCHEMAS ?? []) checked(problems, "OUTBOX_SCHEMAS", () => quoteIdentifier(schema));
  if (OUTBOX_TABLE !== undefined) checked(problems, "OUTBOX_TABLE", () => parseTableName(OUTBOX_TABLE));
  const isNothingNamed = sources.every((it) => it === undefined);
  if (usualTable !== null && isNothingNamed) return { schemas: [], tables: [usualTable], ...own };
  if (isNothingNamed) {
    problems.push(
      "No sources are set: set OUTBOX_SCHEMAS to schema,schema or *, or OUTBOX_TABLE, OUTBOX_MANAGED or OUTBOX_EVENT_TABLES to schema.table",
    );
  }
  const tables = OUTBOX_TABLE === undefined ? [] : [OUTBOX_TABLE];
  return { schemas: isAll ? "*" : [...new Set(OUTBOX_SCHEMAS)], tables, ...own };
}

function explicitPolicy(settings: Settings, problems: string[]): ExplicitPolicy {
  const { RETRY_INITIAL_DELAY_MS: initialMs, RETRY_MAX_DELAY_MS: maxMs } = settings;
  if (initialMs !== undefined && maxMs !== undefined && initialMs > maxMs) {
    problems.push(`RETRY_INITIAL_DELAY_MS (${initialMs} ms) is above RETRY_MAX_DELAY_MS (${maxMs} ms): lower it`);
  }
  return {
    pollIntervalMs: settings.POLL_INTERVAL_MS,
    onExhausted: settings.ON_EXHAUSTED,
    retry: { attemptsMax: settings.MAX_RETRIES, initialMs, maxMs, jitter: settings.RETRY_JITTER },
    schedule: scheduleOf(settings, problems),
  };
}

/** Listed and computed delays exclude each other. */
function scheduleOf(settings: Settings, problems: string[]): readonly number[] | undefined {
  const { RETRY_SCHEDULE: listed } = settings;
  if (listed === undefined) return undefined;
  const computed = (["MAX_RETRIES", "RETRY_INITIAL_DELAY_MS", "RETRY_MAX_DELAY_MS", "RETRY_JITTER"] as const).find(
    (name) => settings[name] !== undefined,
  );
  if (computed !== undefined) {
    problems.push(`RETRY_SCHEDULE lists the delays, but ${computed} computes them: keep one of them`);
  }
  return listed.map((written) => pauseMs(written, "RETRY_SCHEDULE", problems) ?? 0);
}

function checked<T>(problems: string[], name: string, check: () => T): T | undefined {
  try {
    return check();
  } catch (error) {
    problems.push(`${name}: ${reasonOf(error).replace(/ \[CONFIG_INVALID\].*$/, "")}`);
    return undefined;
  }
}
