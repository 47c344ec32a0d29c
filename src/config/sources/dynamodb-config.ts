import { hostname } from "node:os";
import { matchesPattern } from "../../core/type-filter.ts";
import { type ConfigSources, loadSettings } from "../load-config.ts";
import { ConfigProblems } from "../reading/config-problems.ts";
import type { ReadSettings } from "../reading/read-settings.ts";
import type { Settings } from "../settings/settings.ts";
import { type TelemetryConfig, telemetryConfig } from "../telemetry-config.ts";
import { type LoadedIntentRelay, loadIntentRelays } from "./intent-relays.ts";
import { intentSecrets } from "./intents-config.ts";

/** The tables of the intents, and how to reach them. */
export interface DynamoDbConfig {
  readonly location: { readonly region?: string; readonly endpoint?: string };
  readonly table: string;
  readonly deadLetterTable: string;
  readonly checkpointTable: string;
}

/** The validated configuration of the intent runner. */
export interface DynamoDbRunConfig extends DynamoDbConfig {
  /** What was read, with the origin of each value. */
  readonly read: ReadSettings;
  readonly service: string;
  readonly instanceName: string;
  /** The relays that run in this process; never empty. */
  readonly relays: readonly LoadedIntentRelay[];
  /** All types that have a relay, including those that another process runs. */
  readonly knownTypes: readonly string[];
  /** Whether a relay writes to standard output. Then the log goes to standard error. */
  readonly usesStdout: boolean;
  /** The settings of the destinations as environment variables, as a function in AWS would have them. */
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

/** The default of an event source mapping in AWS, and the most that the stream returns at once. */
const BATCH_SIZE = 100;
const BATCH_SIZE_MAX = 1_000;

/** For commands that only use the tables. Throws ConfigProblems. */
export async function loadDynamoDbConfig(sources: ConfigSources): Promise<DynamoDbConfig> {
  const { settings } = await loadSettings(sources);
  const problems: string[] = [];
  const config = dynamoDbConfig(settings, problems);
  if (problems.length > 0) throw new ConfigProblems(problems);
  return config;
}

/** For commands that run relays. Throws ConfigProblems with all problems at once. */
export async function loadDynamoDbRunConfig(sources: ConfigSources): Promise<DynamoDbRunConfig> {
  const read = await loadSettings(sources);
  const { secrets, settings, warnings } = read;
  const problems: string[] = [];
  const loaded = await loadRelays(read);
  if (loaded.length === 0) {
    problems.push("No intent relays found: write relays/<intent>-relay.ts, or set OUTBOX_INTENTS to their folder");
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
    problems.push("DYNAMODB_ENDPOINT is not a URL such as http://host:port");
  }
  const deadLetterTable = OUTBOX_DYNAMODB_DEAD_LETTERS ?? `${table}-dead-letters`;
  if (deadLetterTable === table)
    problems.push("OUTBOX_DYNAMODB_DEAD_LETTERS and OUTBOX_DYNAMODB_TABLE name the same table: use two");
  return {
    location: {
      ...(AWS_REGION === undefined ? {} : { region: AWS_REGION }),
      ...(DYNAMODB_ENDPOINT === undefined ? {} : { endpoint: DYNAMODB_ENDPOINT }),
    },
    table,
    deadLetterTable,
    checkpointTable: settings.OUTBOX_DYNAMODB_CHECKPOINTS,
  };
}

/** Named destinations can be in the config file, which a handler does not read. */
function destinationVariables({ OUTBOX_DESTINATION, OUTBOX_DESTINATIONS }: Settings): Record<string, string> {
  if (OUTBOX_DESTINATIONS !== undefined) return { OUTBOX_DESTINATIONS: JSON.stringify(OUTBOX_DESTINATIONS) };
  return OUTBOX_DESTINATION === undefined ? {} : { OUTBOX_DESTINATION };
}

/** A path from the environment or the command line is relative to the working folder. */
async function loadRelays({
  origins,
  baseFolders = [],
  settings,
}: ReadSettings): Promise<readonly LoadedIntentRelay[]> {
  const kind = origins.get("OUTBOX_INTENTS")?.kind;
  const isInFile = kind !== "environment" && kind !== "flag";
  return await loadIntentRelays(settings.OUTBOX_INTENTS, isInFile ? baseFolders : baseFolders.toReversed());
}

function restricted(
  loaded: readonly LoadedIntentRelay[],
  only: readonly string[],
  problems: string[],
): readonly LoadedIntentRelay[] {
  if (only.length === 0) return loaded;
  const relays = loaded.filter(({ relay }) => only.some((pattern) => matchesPattern(pattern, relay.type)));
  if (loaded.length > 0 && relays.length === 0)
    problems.push(`OUTBOX_ONLY is ${only.join(",")}, which matches no intent relay`);
  return relays;
}
