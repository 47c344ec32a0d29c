import type { Settings } from "./settings/settings.ts";

/**
 * The parts of an address that matter here. Parsed by hand, because URL parsers reject addresses with several hosts.
 */
interface Connection {
  readonly hosts: readonly string[];
  readonly hasSecret: boolean;
  readonly parameters: URLSearchParams;
  readonly scheme: string;
}

const ADDRESS = /^([a-z][a-z0-9+.-]*):\/\/(?:([^/?#]*)@)?([^/?#]*)[^?#]*(?:\?([^#]*))?/i;

function connectionOf(address: string): Connection | null {
  const [, scheme, login, hosts = "", query] = ADDRESS.exec(address) ?? [];
  if (scheme === undefined) return null;
  const parameters = new URLSearchParams(query);
  const hasSecret = /:./.test(login ?? "") || parameters.has("password");
  return {
    scheme: scheme.toLowerCase(),
    hosts: [...hosts.split(","), ...parameters.getAll("host")],
    hasSecret,
    parameters,
  };
}

/** True for this machine, a socket folder, and a missing host. */
function isLocal(host: string): boolean {
  const name = host.replace(/:\d+$/, "").replace(/^\[(.*)\]$/, "$1");
  return /^(?:|localhost|::1|127\.\d+\.\d+\.\d+|[/@%].*)$/i.test(name);
}

/** Warns of passwords and tokens that travel unencrypted to another machine. Destinations warn about their own. */
export function clearTextWarnings(settings: Settings): string[] {
  const { ALLOY_PUSH_URL, KURRENTDB_URL, LOKI_BASIC_AUTH, LOKI_HOST, OUTBOX_STORE } = settings;
  const { OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS, REDIS_PASSWORD } = settings;
  const { KAFKA_OAUTH_CLIENT_SECRET, KAFKA_OAUTH_TOKEN_URL } = settings;
  return [
    ...databaseWarning(settings),
    ...warning("OUTBOX_STORE", OUTBOX_STORE, REDIS_PASSWORD, /^redis$/, "write rediss:// if the server supports it"),
    ...kurrentdbWarning(KURRENTDB_URL),
    ...webWarning("LOKI_HOST", LOKI_HOST, LOKI_BASIC_AUTH),
    ...webWarning("ALLOY_PUSH_URL", ALLOY_PUSH_URL),
    ...webWarning("OTEL_EXPORTER_OTLP_ENDPOINT", OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS),
    ...webWarning("KAFKA_OAUTH_TOKEN_URL", KAFKA_OAUTH_TOKEN_URL, KAFKA_OAUTH_CLIENT_SECRET),
  ];
}

function databaseWarning({ DATABASE_URL, PGHOST, PGPASSWORD, PGSSLMODE }: Settings): string[] {
  const { hasSecret, hosts, parameters } = connectionOf(DATABASE_URL ?? `postgres://${PGHOST ?? ""}`) ?? {};
  const mode = parameters?.get("sslmode") ?? PGSSLMODE ?? "disable";
  if (mode !== "disable" || !(hasSecret === true || PGPASSWORD !== undefined)) return [];
  if (hosts === undefined || hosts.every(isLocal)) return [];
  return ["The password goes to PostgreSQL unencrypted: set PGSSLMODE=verify-full, or require if that is not possible"];
}

function kurrentdbWarning(address: string | undefined): string[] {
  const connection = address === undefined ? null : connectionOf(address);
  if (connection === null || !connection.hasSecret || connection.hosts.every(isLocal)) return [];
  const isClear = connection.parameters.get("tls")?.toLowerCase() === "false";
  return isClear ? ["The password goes to KurrentDB unencrypted: write tls=true in KURRENTDB_URL"] : [];
}

function webWarning(name: string, address: string | undefined, secret?: unknown): string[] {
  return warning(name, address, secret, /^http$/, "write https:// if the receiver supports it");
}

function warning(name: string, address: string | undefined, secret: unknown, clear: RegExp, advice: string): string[] {
  const connection = address === undefined ? null : connectionOf(address);
  if (connection === null || !clear.test(connection.scheme) || connection.hosts.every(isLocal)) return [];
  if (!connection.hasSecret && secret === undefined) return [];
  return [`${name}: the password or token goes over the network unencrypted: ${advice}`];
}
