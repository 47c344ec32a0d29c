import type { Settings } from "./settings.ts";

/** An address as far as it matters here; taken apart by hand, as some have several hosts, which no parser takes. */
interface Connection {
  readonly hosts: readonly string[];
  readonly hasSecret: boolean;
  readonly words: URLSearchParams;
  readonly scheme: string;
}

const ADDRESS = /^([a-z][a-z0-9+.-]*):\/\/(?:([^/?#]*)@)?([^/?#]*)[^?#]*(?:\?([^#]*))?/i;

function connectionOf(address: string): Connection | null {
  const [, scheme, login, hosts = "", query] = ADDRESS.exec(address) ?? [];
  if (scheme === undefined) return null;
  const words = new URLSearchParams(query);
  const hasSecret = /:./.test(login ?? "") || words.has("password");
  return { scheme: scheme.toLowerCase(), hosts: [...hosts.split(","), ...words.getAll("host")], hasSecret, words };
}

/** Also a folder of sockets, and no host at all. */
function isHere(host: string): boolean {
  const name = host.replace(/:\d+$/, "").replace(/^\[(.*)\]$/, "$1");
  return /^(?:|localhost|::1|127\.\d+\.\d+\.\d+|[/@%].*)$/i.test(name);
}

/** Passwords and tokens that would travel unencrypted to another machine. Destinations warn of their own. */
export function clearTextWarnings(settings: Settings): string[] {
  const { ALLOY_PUSH_URL, KURRENTDB_URL, LOKI_BASIC_AUTH, LOKI_HOST, OUTBOX_STORE } = settings;
  const { OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS, REDIS_PASSWORD } = settings;
  const { KAFKA_OAUTH_CLIENT_SECRET, KAFKA_OAUTH_TOKEN_URL } = settings;
  return [
    ...databaseWarning(settings),
    ...warning("OUTBOX_STORE", OUTBOX_STORE, REDIS_PASSWORD, /^redis$/, "write rediss:// where the server can"),
    ...kurrentdbWarning(KURRENTDB_URL),
    ...webWarning("LOKI_HOST", LOKI_HOST, LOKI_BASIC_AUTH),
    ...webWarning("ALLOY_PUSH_URL", ALLOY_PUSH_URL),
    ...webWarning("OTEL_EXPORTER_OTLP_ENDPOINT", OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS),
    ...webWarning("KAFKA_OAUTH_TOKEN_URL", KAFKA_OAUTH_TOKEN_URL, KAFKA_OAUTH_CLIENT_SECRET),
  ];
}

function databaseWarning({ DATABASE_URL, PGHOST, PGPASSWORD, PGSSLMODE }: Settings): string[] {
  const { hasSecret, hosts, words } = connectionOf(DATABASE_URL ?? `postgres://${PGHOST ?? ""}`) ?? {};
  const mode = words?.get("sslmode") ?? PGSSLMODE ?? "disable";
  if (mode !== "disable" || !(hasSecret === true || PGPASSWORD !== undefined)) return [];
  if (hosts === undefined || hosts.every(isHere)) return [];
  return ["The password goes to PostgreSQL in the clear: set PGSSLMODE=verify-full, or require where that cannot be"];
}

function kurrentdbWarning(address: string | undefined): string[] {
  const connection = address === undefined ? null : connectionOf(address);
  if (connection === null || !connection.hasSecret || connection.hosts.every(isHere)) return [];
  const isClear = connection.words.get("tls")?.toLowerCase() === "false";
  return isClear ? ["The password goes to KurrentDB in the clear: write tls=true in KURRENTDB_URL"] : [];
}

function webWarning(name: string, address: string | undefined, secret?: unknown): string[] {
  return warning(name, address, secret, /^http$/, "write https:// where the receiver can");
}

function warning(name: string, address: string | undefined, secret: unknown, clear: RegExp, advice: string): string[] {
  const connection = address === undefined ? null : connectionOf(address);
  if (connection === null || !clear.test(connection.scheme) || connection.hosts.every(isHere)) return [];
  if (!connection.hasSecret && secret === undefined) return [];
  return [`${name}: the password or token goes over the network in the clear: ${advice}`];
}
