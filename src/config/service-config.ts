import { hostname } from "node:os";
import { reasonOf } from "../core/errors.ts";
import type { Limits, Timing } from "../core/limits.ts";
import type { ColumnNames } from "../postgres/column-names.ts";
import { parseTableName, quoteIdentifier } from "../postgres/identifiers.ts";
import type { DatabaseOptions } from "../postgres/pool.ts";
import { type AccessConfig, accessConfig, accessSecrets, accessWarnings } from "./access-config.ts";
import { clearTextWarnings } from "./clear-text-warnings.ts";
import { columnsConfig } from "./columns-config.ts";
import { ConfigProblems } from "./config-problems.ts";
import { databaseConfig, databaseWarnings } from "./database-config.ts";
import type { DestinationConfig } from "./destinations/destination-scheme.ts";
import type { LoadedIntentRelay } from "./intent-relays.ts";
import { intentSecrets, waysConfig } from "./intents-config.ts";
import { databaseTimeoutsFor, instanceLeaseOf, publishTimeoutFor, timingFor } from "./lease-timing.ts";
import { type LogsConfig, logsConfig } from "./logs-config.ts";
import { pauseMs } from "./pause.ts";
import type { ExplicitPolicy } from "./presets.ts";
import type { ReadSettings } from "./read-settings.ts";
import { deliveredPerSecond } from "./record-settings.ts";
import { type RedisStoreConfig, redisStoreConfig } from "./redis-store-config.ts";
import { type RequestsConfig, requestsConfig } from "./requests-config.ts";
import type { RouteConfig } from "./routes-config.ts";
import type { Settings } from "./settings.ts";
import { type SubscriberConfig, subscribersConfig } from "./subscribers-config.ts";
import { type TelemetryConfig, telemetryConfig } from "./telemetry-config.ts";
import { durationText } from "./value-types.ts";

/** All that the service needs to know, checked. Wherever it came from, the rest of the program sees only this. */
export interface ServiceConfig {
  readonly service: string;
  readonly instanceName: string;
  readonly database: DatabaseOptions;
  /** Where the events wait, if not in the database. */
  readonly store: RedisStoreConfig | null;
  /** Set when the events come from an event store: then nothing of a database counts. */
  readonly requests: RequestsConfig | null;
  readonly http: { readonly host: string; readonly port: number };
  readonly access: AccessConfig;
  readonly log: { readonly level: Settings["LOG_LEVEL"]; readonly events: Settings["LOG_EVENTS"] };
  readonly telemetry: TelemetryConfig;
  readonly sources: {
    readonly schemas: readonly string[] | "*";
    readonly tables: readonly string[];
    readonly columns: ColumnNames;
    /** Of the claims in an Open Outbox table; null for its own default. */
    readonly claimLeaseMs: number | null;
    /** Patterns of the types to deliver; empty for all of them. */
    readonly only: readonly string[];
  };
  /** At least one. */
  readonly destinations: readonly DestinationConfig[];
  /** Of queues, and of logs that have no subscribers. */
  readonly routes: readonly RouteConfig[];
  readonly logs: LogsConfig;
  readonly subscribers: readonly SubscriberConfig[];
  readonly policy: ExplicitPolicy;
  readonly lanes: number;
  readonly limits: Partial<Limits>;
  readonly timing: Partial<Timing>;
  readonly retentionMs: number | null;
  readonly record: {
    /** Delivered events that are recorded; Infinity for all. */
    readonly deliveredPerSecond: number;
    readonly retentionMs: number;
    /** Names of headers and fields that nobody is to see. */
    readonly redact: readonly string[];
  };
  readonly shutdownMs: number;
  /** Values that no log line may show. */
  readonly secrets: readonly string[];
  readonly warnings: readonly string[];
}

/** Throws ConfigProblems with everything that is wrong. */
export function serviceConfig(
  { settings, origins, secrets, warnings }: ReadSettings,
  relays: readonly LoadedIntentRelay[] = [],
): ServiceConfig {
  const problems: string[] = [];
  const leaseMs = instanceLeaseOf(settings);
  // Whoever comes from the Open Outbox Relay has its variables and its table, which needs no naming there.
  const isOpenOutbox = /^STORAGE_URL/.test(origins.get("DATABASE_URL")?.name ?? "");
  const { destinations, routes } = waysConfig(settings, relays, problems);
  // Without a database nothing has to be said of one.
  const ofDatabase = settings.OUTBOX_STORE === undefined && settings.KURRENTDB_URL === undefined ? problems : [];
  const config = {
    service: settings.SERVICE_NAME,
    instanceName: settings.RELAY_ID ?? `${hostname()}/${process.pid}`,
    database: { ...databaseConfig(settings, ofDatabase), timeouts: databaseTimeoutsFor(leaseMs) },
    http: { host: settings.HOST, port: settings.PORT },
    access: accessConfig(settings, problems),
    log: { level: settings.LOG_LEVEL, events: settings.LOG_EVENTS },
    telemetry: telemetryConfig(settings, problems),
    sources: sourcesConfig(settings, isOpenOutbox, ofDatabase),
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
  const own = [...accessWarnings(settings), ...databaseWarnings(settings), ...clearTextWarnings(settings)];
  return { ...config, warnings: [...warnings, ...own, ...remarks] };
}

function limitsConfig({ REAP_BATCH_SIZE }: Settings): Partial<Limits> {
  return REAP_BATCH_SIZE === undefined ? {} : { reapRowsMax: REAP_BATCH_SIZE };
}

function publishTimeoutOf(settings: Settings, leaseMs: number, problems: string[]): number {
  const { PUBLISH_TIMEOUT } = settings;
  if (PUBLISH_TIMEOUT === undefined) return publishTimeoutFor(leaseMs);
  if (PUBLISH_TIMEOUT >= leaseMs) {
    // A publish that outlives the lease could meet a successor with the same events.
    const setting = settings.INSTANCE_LEASE === undefined ? "LEASE_TIMEOUT" : "INSTANCE_LEASE";
    const [publish, lease] = [durationText(PUBLISH_TIMEOUT), durationText(leaseMs)];
    problems.push(`PUBLISH_TIMEOUT (${publish}) must be below ${setting} (${lease}): lower it, or raise ${setting}`);
  }
  return PUBLISH_TIMEOUT;
}

function sourcesConfig(settings: Settings, isOpenOutbox: boolean, problems: string[]): ServiceConfig["sources"] {
  const { OUTBOX_EVENT_TABLES, OUTBOX_MANAGED, OUTBOX_SCHEMAS, OUTBOX_TABLE, OUTBOX_WAL } = settings;
  const sources = [OUTBOX_SCHEMAS, OUTBOX_TABLE, OUTBOX_MANAGED, OUTBOX_EVENT_TABLES, OUTBOX_WAL];
  const columns = columnsConfig(settings.OUTBOX_COLUMNS, problems);
  const claimLeaseMs = settings.LEASE_TIMEOUT ?? null;
  const own = { columns, claimLeaseMs, only: [...new Set(settings.OUTBOX_ONLY)] };
  const isAll = OUTBOX_SCHEMAS?.includes("*") ?? false;
  if (isAll && OUTBOX_SCHEMAS!.length > 1) {
    problems.push("OUTBOX_SCHEMAS has * and other names: * alone takes every schema that has an outbox table");
  }
  for (const schema of OUTBOX_SCHEMAS ?? []) checked(problems, "OUTBOX_SCHEMAS", () => quoteIdentifier(schema));
  if (OUTBOX_TABLE !== undefined) checked(problems, "OUTBOX_TABLE", () => parseTableName(OUTBOX_TABLE));
  const isNothingNamed = sources.every((it) => it === undefined);
  if (isOpenOutbox && isNothingNamed) return { schemas: [], tables: ["public.openoutbox_events"], ...own };
  if (isNothingNamed) {
    problems.push(
      "The sources are missing: set OUTBOX_SCHEMAS to schema,schema or *, or OUTBOX_TABLE, OUTBOX_MANAGED or OUTBOX_EVENT_TABLES to schema.table",
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
    batchSize: settings.BATCH_SIZE,
    onExhausted: settings.ON_EXHAUSTED,
    retry: { attemptsMax: settings.MAX_RETRIES, initialMs, maxMs, jitter: settings.RETRY_JITTER },
    schedule: scheduleOf(settings, problems),
  };
}

/** Listed pauses and computed ones exclude each other. */
function scheduleOf(settings: Settings, problems: string[]): readonly number[] | undefined {
  const { RETRY_SCHEDULE: listed } = settings;
  if (listed === undefined) return undefined;
  const computed = (["MAX_RETRIES", "RETRY_INITIAL_DELAY_MS", "RETRY_MAX_DELAY_MS", "RETRY_JITTER"] as const).find(
    (name) => settings[name] !== undefined,
  );
  if (computed !== undefined) {
    problems.push(`RETRY_SCHEDULE lists the pauses and ${computed} computes them: keep one of them`);
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
