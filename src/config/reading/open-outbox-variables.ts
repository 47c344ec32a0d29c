import type { Environment } from "./environment.ts";

/** Variables that only a deployment of the Open Outbox Relay has. Its other names are common. */
const MARKERS = ["STORAGE_URL", "STORAGE_URL_FILE", "STORAGE_TYPE", "STORAGE_TABLE_NAME", "PUBLISHER_URL"];

/** Its variables that this relay does not need, because it works without such tuning. */
const UNUSED = [
  "HEALTH_CHECK_INTERVAL",
  "PUBLISHER_CONNECT_RETRY_INTERVAL",
  "KAFKA_BATCH_SIZE",
  "KAFKA_BATCH_BYTES",
  "KAFKA_BATCH_TIMEOUT",
  "KAFKA_MAX_ATTEMPTS",
  "KAFKA_WRITE_TIMEOUT",
  "KAFKA_READ_TIMEOUT",
  "KAFKA_CONNECTION_TIMEOUT",
  "NATS_PUBLISH_TIMEOUT",
  "NATS_CONNECTION_TIMEOUT",
  "REDIS_CONNECTION_TIMEOUT",
  "REDIS_WRITE_TIMEOUT",
  "OTEL_BSP_EXPORT_TIMEOUT",
  "OTEL_BSP_SCHEDULE_DELAY",
  "OTEL_METRIC_EXPORT_INTERVAL",
];

/** Its variables of which some values describe what this relay does anyway, and others ask for what it does not do. */
const FIXED: Readonly<Record<string, { readonly met: RegExp; readonly instead: string }>> = {
  ENVIRONMENT: { met: /^production$/i, instead: "the log is JSON lines always, and LOG_LEVEL sets its level" },
  ENABLE_STATS: { met: /^(?:true|1|yes|on)$/i, instead: "/stats and /metrics are always on" },
  KAFKA_REQUIRED_ACKS: { met: /^(?:all|-1)$/i, instead: "the relay waits for all in-sync replicas always" },
  KAFKA_ASYNC: { met: /^(?:false|0)$/i, instead: "the relay waits for the acknowledgement always" },
  OTEL_EXPORTER_OTLP_PROTOCOL: {
    met: /^http/i,
    instead: "traces go by HTTP, so OTEL_EXPORTER_OTLP_ENDPOINT must name the collector's HTTP port, usually 4318",
  },
  OTEL_METRICS_EXPORTER: { met: /^none$/i, instead: "metrics are on /metrics, and ALLOY_PUSH_URL pushes them" },
};

/** Documents what replaces each variable. */
const GUIDE = "docs/recipes/from-open-outbox-relay.md";

/** The known names, so that none of them counts as a misspelt setting. */
export const OPEN_OUTBOX_VARIABLES: ReadonlySet<string> = new Set(["STORAGE_TYPE", ...UNUSED, ...Object.keys(FIXED)]);

/** Whether this environment was written for the Open Outbox Relay. */
function isOpenOutbox(env: Environment): boolean {
  return MARKERS.some((name) => env[name]);
}

/** Warns of variables of the Open Outbox Relay that have no effect here. */
export function openOutboxRemarks(env: Environment): string[] {
  if (!isOpenOutbox(env)) return [];
  const unused = UNUSED.filter((name) => env[name]);
  const unmet = Object.entries(FIXED).filter(([name, { met }]) => env[name] && !met.test(env[name]));
  return [
    ...unmet.map(([name, { instead }]) => `${name}=${env[name]} has no effect: ${instead}`),
    ...(unused.length === 0
      ? []
      : [`Variables of the Open Outbox Relay without effect here, see ${GUIDE}: ${unused.join(", ")}`]),
  ];
}

/** The relay reads this contract's table in PostgreSQL only. */
export function openOutboxProblems(env: Environment): string[] {
  const { STORAGE_TYPE: type } = env;
  if (!type || /^postgres(?:ql)?$/i.test(type)) return [];
  return [`STORAGE_TYPE is ${JSON.stringify(type)}: the relay reads this table in postgres only`];
}

const LISTEN_ADDRESS = /^(?:\[([0-9a-f:.]+)\]|([^:[\]]*)):(\d+)$/i;

/** The port of an address to listen on, as Go writes it: `:8080`, `127.0.0.1:8080`, `[::1]:8080`. */
export function listenPort(written: string): string {
  return LISTEN_ADDRESS.exec(written.trim())?.[3] ?? written;
}

/** The host of such an address, where none means all interfaces; null for a bare port. */
export function listenHost(written: string): string | null {
  const [whole, ipv6, host] = LISTEN_ADDRESS.exec(written.trim()) ?? [];
  return whole === undefined ? null : ipv6 || host || "0.0.0.0";
}

/** The table's name. Without a schema it is in `public`. */
export function storageTable(written: string): string {
  return written.includes(".") ? written : `public.${written}`;
}

/** What the types `stdout` and `null` of the Open Outbox Relay mean: both need no URL. */
const WITHOUT_ADDRESS: Readonly<Record<string, string>> = { stdout: "stdout:", null: "discard:", discard: "discard:" };

/** The address that the type alone stands for; null for a type with a URL. */
export function addressOfType(type: string | undefined): string | null {
  return (type === undefined ? undefined : WITHOUT_ADDRESS[type.toLowerCase()]) ?? null;
}
