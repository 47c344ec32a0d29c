import { tmpdir } from "node:os";
import { loadConfig } from "../config/load-config.ts";
import { CONFIG_FILE_VARIABLE, type Environment } from "../config/reading/environment.ts";
import { ENVIRONMENT_NAMES } from "../config/settings/names.ts";
import { settingOf } from "../config/settings/settings.ts";
import { SHOP_SUBSCRIBERS } from "./demo-shop.ts";
import { SOURCE_HEADER } from "./destination-wire.ts";

export const DEMO_SERVICE = "outbox-relay-dev";

/** Argument of the relay's process: deliver to the parent process. */
export const DELIVER_TO_PARENT = "deliver-to-parent";

/** Circuits and holds are checked often, so that the effect of a switch is visible at once. */
export const DEMO_TIMING = { circuitMaxMs: 1_000, reviewMs: 1_000 };

/** Settings of destinations and telemetry come from the user; the demo sets all others. */
const PASSED_ON = /^(?:destinations?|routes|topics|messages)(?:\.|$)/;
const TELEMETRY = /^(?:OTEL_|LOKI_|ALLOY_|METRICS_PUSH)/;

function isPassedOn(name: string): boolean {
  const known = ENVIRONMENT_NAMES.get(name);
  if (known === undefined) return name !== CONFIG_FILE_VARIABLE;
  return isOfServers(name);
}

function isOfServers(name: string): boolean {
  const known = ENVIRONMENT_NAMES.get(name);
  return TELEMETRY.test(name) || (known !== undefined && PASSED_ON.test(settingOf(known.setting).path));
}

/** Removes variables that would send the demo's events, logs, metrics or traces to other servers. */
export function withoutServers(env: Environment): Environment {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !isOfServers(name)));
}

const RECEIVERS = new Set<string>(["LOKI_HOST", "ALLOY_PUSH_URL", "OTEL_EXPORTER_OTLP_ENDPOINT"]);

/** Variables that name a server for events, logs, metrics or traces. */
export function serversIn(env: Environment): string[] {
  const isServer = (name: string) => {
    const setting = ENVIRONMENT_NAMES.get(name)?.setting ?? "";
    return BROKERS.has(setting) || RECEIVERS.has(setting);
  };
  return Object.keys(env).filter((name) => env[name] && isServer(name));
}

const BROKERS = new Set<string>(["KAFKA_BROKERS", "RABBITMQ_HOST", "OUTBOX_DESTINATION", "OUTBOX_DESTINATIONS"]);

function hasBroker(env: Environment): boolean {
  return Object.keys(env).some((name) => env[name] && BROKERS.has(ENVIRONMENT_NAMES.get(name)?.setting ?? ""));
}

/** Describes the user's own broker; null without one. Throws ConfigProblems if its settings are invalid. */
export async function brokerOf(env: Environment): Promise<string | null> {
  if (!hasBroker(env)) return null;
  // Loading the configuration does not connect to the database, which may not run yet.
  const complete = relayEnvironment(env, "postgres://user@127.0.0.1/none", 1);
  const { config } = await loadConfig({ env: complete, cwd: tmpdir() });
  return config.destinations
    .map(({ addresses, kind }) => (addresses.length === 0 ? kind : `${kind} at ${addresses.join(", ")}`))
    .join(", ");
}

/** The environment of the relay's process. */
export function relayEnvironment(env: Environment, databaseUrl: string, port: number): Record<string, string> {
  const passedOn = Object.entries(env).flatMap(([name, value]) =>
    value === undefined || !isPassedOn(name) ? [] : [[name, value] as const],
  );
  const demo = {
    OUTBOX_DESTINATION: "stdout:",
    // A type without an address would contradict it.
    PUBLISHER_TYPE: "",
    DELIVERY: "at-least-once",
    HEADERS_TEMPLATE: `${SOURCE_HEADER}={schema}.{table}`,
    OUTBOX_ROUTES: JSON.stringify([{ types: "*" }]),
    OUTBOX_SUBSCRIBERS: JSON.stringify(SHOP_SUBSCRIBERS.map((name) => ({ name }))),
  };
  return {
    ...Object.fromEntries(passedOn),
    ...(hasBroker(env) ? {} : demo),
    DATABASE_URL: databaseUrl,
    OUTBOX_SCHEMAS: "*",
    SERVICE_NAME: DEMO_SERVICE,
    HOST: "127.0.0.1",
    PORT: String(port),
    LOG_LEVEL: "info",
    // Short, so that the successor of a killed relay continues as soon as it is running.
    LEASE_TIMEOUT: "3s",
    RETENTION: "10m",
    RETRY_INITIAL_DELAY_MS: "500ms",
    RETRY_MAX_DELAY_MS: "5s",
    MAX_RETRIES: "10",
    // Events behind a dead letter wait in every kind of table, so a replay keeps the order.
    ON_EXHAUSTED: "park",
    POLL_INTERVAL_MS: "200ms",
    SHUTDOWN_TIMEOUT_MS: "5s",
  };
}
