import { hostname } from "node:os";
import { matchesPattern } from "../core/type-pattern.ts";
import { ConfigProblems } from "./config-problems.ts";
import { type LoadedIntentRelay, loadIntentRelays } from "./intent-relays.ts";
import { intentSecrets } from "./intents-config.ts";
import { type ConfigSources, loadSettings } from "./load-config.ts";
import type { ReadSettings } from "./read-settings.ts";
import type { Settings } from "./settings.ts";
import { type TelemetryConfig, telemetryConfig } from "./telemetry-config.ts";

/** Where the intents are. */
export interface DynamoDbConfig {
  readonly place: { readonly region?: string; readonly endpoint?: string };
  readonly table: string;
  readonly deadLetterTable: string;
  readonly checkpointTable: string;
}

/** All that the local runner needs to know, checked. */
export interface DynamoDbRunConfig extends DynamoDbConfig {
  /** What was read, with the origin of each value. */
  readonly read: ReadSettings;
  readonly service: string;
  readonly instanceName: string;
  /** Those that run in this process. At least one. */
  readonly relays: readonly LoadedIntentRelay[];
  /** All types that have a relay, also where another process runs it. */
  readonly knownTypes: readonly string[];
  /** Whether a relay writes to standard output, where the log would be otherwise. */
  readonly usesStdout: boolean;
  /** The settings of the destinations, as a function would find them in its environment. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly batchSize: number;
  readonly timing: {
    readonly pollMs?: number;
    readonly leaseMs?: number;
    readonly sweepMs: number;
    readonly invocationMs: number;
  };
  readonly http: { readonly host: string; readonly port: number };
  readonly log: { readonly level: Settings["LOG_LEVEL"]; readonly events: Settings["LOG_EVENTS"] };
  readonly telemetry: TelemetryConfig;
  readonly shutdownMs: number;
  readonly secrets: readonly string[];
  readonly warnings: readonly string[];
}

/** As a mapping in AWS has it by default; and the most that the stream gives at once. */
const BATCH_SIZE = 100;
const BATCH_SIZE_MAX = 1_000;

/** For a command that only talks to the tables. Throws ConfigProblems. */
export async function loadDynamoDbConfig(sources: ConfigSources): Promise<DynamoDbConfig> {
  const { settings } = await loadSettings(sources);
  const problems: string[] = [];
  const config = dynamoDbConfig(settings, problems);
  if (problems.length > 0) throw new ConfigProblems(problems);
  return config;
}

/** For a command that runs relays. Throws ConfigProblems with everything that is wrong. */
export async function loadDynamoDbRunConfig(sources: ConfigSources): Promise<DynamoDbRunConfig> {
  const read = await loadSettings(sources);
  const { secrets, settings, warnings } = read;
  const problems: string[] = [];
  const loaded = await loadRelays(read);
  if (loaded.length === 0) {
    problems.push(
      "The intent relays are missing: write relays/<intent>-relay.ts, or name their folder in OUTBOX_INTENTS",
    );
  }
  const relays = restricted(loaded, settings.OUTBOX_ONLY ?? [], problems);
  const config: DynamoDbRunConfig = {
    ...dynamoDbConfig(settings, problems),
    read,
    service: settings.SERVICE_NAME,
    instanceName: settings.RELAY_ID ?? `${hostname()}/${process.pid}`,
    relays,
    knownTypes: loaded.map(({ relay }) => relay.type),
    usesStdout: relays.some(({ relay: { target } }) => "url" in target && /^stdout:/i.test(target.url)),
    env: { ...sources.env, ...destinationVariables(settings) },
    batchSize: Math.min(settings.BATCH_SIZE ?? BATCH_SIZE, BATCH_SIZE_MAX),
    timing: {
      ...(settings.POLL_INTERVAL_MS === undefined ? {} : { pollMs: settings.POLL_INTERVAL_MS }),
      ...(settings.LEASE_TIMEOUT === undefined ? {} : { leaseMs: settings.LEASE_TIMEOUT }),
      sweepMs: settings.OUTBOX_DYNAMODB_SWEEP_INTERVAL,
      invocationMs: settings.OUTBOX_DYNAMODB_TIMEOUT,
    },
    http: { host: settings.HOST, port: settings.PORT },
    log: { level: settings.LOG_LEVEL, events: settings.LOG_EVENTS },
    telemetry: telemetryConfig(settings, problems),
    shutdownMs: settings.SHUTDOWN_TIMEOUT_MS,
    secrets: [...secrets, ...intentSecrets(loaded)],
    warnings,
  };
  if (problems.length > 0) throw new ConfigProblems(problems);
  return config;
}

function dynamoDbConfig(settings: Settings, problems: string[]): DynamoDbConfig {
  const { AWS_REGION, DYNAMODB_ENDPOINT, OUTBOX_DYNAMODB_DEAD_LETTERS, OUTBOX_DYNAMODB_TABLE } = settings;
  const table = OUTBOX_DYNAMODB_TABLE;
  const url = DYNAMODB_ENDPOINT === undefined ? null : URL.parse(DYNAMODB_ENDPOINT);
  if (DYNAMODB_ENDPOINT !== undefined && (url === null || !/^https?:$/.test(url.protocol) || url.username !== "")) {
    problems.push("DYNAMODB_ENDPOINT is no address like http://host:port");
  }
  const deadLetterTable = OUTBOX_DYNAMODB_DEAD_LETTERS ?? `${table}-dead-letters`;
  if (deadLetterTable === table) problems.push("OUTBOX_DYNAMODB_DEAD_LETTERS and OUTBOX_DYNAMODB_TABLE are one table");
  return {
    place: {
      ...(AWS_REGION === undefined ? {} : { region: AWS_REGION }),
      ...(DYNAMODB_ENDPOINT === undefined ? {} : { endpoint: DYNAMODB_ENDPOINT }),
    },
    table,
    deadLetterTable,
    checkpointTable: settings.OUTBOX_DYNAMODB_CHECKPOINTS,
  };
}

/** Destinations with names may stand in the config file, of which a handler knows nothing. */
function destinationVariables({ OUTBOX_DESTINATION, OUTBOX_DESTINATIONS }: Settings): Record<string, string> {
  if (OUTBOX_DESTINATIONS !== undefined) return { OUTBOX_DESTINATIONS: JSON.stringify(OUTBOX_DESTINATIONS) };
  return OUTBOX_DESTINATION === undefined ? {} : { OUTBOX_DESTINATION };
}

/** A path in the environment or on the command line begins where they were written. */
async function loadRelays({ origins, places = [], settings }: ReadSettings): Promise<readonly LoadedIntentRelay[]> {
  const kind = origins.get("OUTBOX_INTENTS")?.kind;
  const isInFile = kind !== "environment" && kind !== "flag";
  return await loadIntentRelays(settings.OUTBOX_INTENTS, isInFile ? places : places.toReversed());
}

function restricted(
  loaded: readonly LoadedIntentRelay[],
  only: readonly string[],
  problems: string[],
): readonly LoadedIntentRelay[] {
  if (only.length === 0) return loaded;
  const relays = loaded.filter(({ relay }) => only.some((pattern) => matchesPattern(pattern, relay.type)));
  if (loaded.length > 0 && relays.length === 0)
    problems.push(`OUTBOX_ONLY is ${only.join(",")}, which no intent relay takes`);
  return relays;
}
