import { readFileSync } from "node:fs";
import { reasonOf } from "../../core/errors.ts";
import { type SplitAddress, splitHosts, type TargetSession } from "../../postgres/hosts.ts";
import type { DatabaseOptions } from "../../postgres/pool.ts";
import type { Settings } from "../settings/settings.ts";

type Tls = NonNullable<DatabaseOptions["ssl"]>;

/** The TLS modes of libpq, plus no-verify. They are set in the address or as PGSSLMODE. */
const MODES = ["disable", "require", "verify-ca", "verify-full", "no-verify"] as const;
type Mode = (typeof MODES)[number];

/** PostgreSQL's own, for an empty item of PGPORT. */
const USUAL_PORT = 5_432;

const NO_USER = "PGPASSWORD or DATABASE_URL has a password but no user: set PGUSER, or write user:password@";

/** The connection to the database. Adds to `problems` what is wrong. */
export function databaseConfig(settings: Settings, problems: string[]): DatabaseOptions {
  const { DATABASE_URL, PGHOST, PGDATABASE, PGUSER, PGPASSWORD, DATABASE_SCHEMA, SERVICE_NAME } = settings;
  const own = { relaySchema: DATABASE_SCHEMA, applicationName: SERVICE_NAME };
  if (DATABASE_URL === undefined) {
    if (PGHOST === undefined && PGDATABASE === undefined) {
      problems.push(`DATABASE_URL is missing: ${wayWithoutDatabase(settings)}`);
    }
    if (PGPASSWORD !== undefined && PGUSER === undefined) problems.push(NO_USER);
    return defined({
      ...own,
      ...serversOf(settings, problems),
      database: PGDATABASE,
      user: PGUSER,
      password: PGPASSWORD,
      ssl: tlsOf(settings.PGSSLMODE, settings.PGSSLROOTCERT, problems),
    });
  }
  const several = hostsOf(DATABASE_URL, settings.PGTARGETSESSIONATTRS, problems);
  const address = addressOf(several?.url ?? DATABASE_URL);
  if (address === null) {
    const hint = "encode special characters in the password, such as %40 for @";
    problems.push(`DATABASE_URL is invalid: write postgres://user:password@host:5432/database (${hint})`);
    return own;
  }
  const { mode, rootCert } = takeTls(address, problems);
  if (address.username === "" && PGUSER !== undefined) address.username = encodeURIComponent(PGUSER);
  // The driver would treat an address without a password as one with an empty password.
  if (address.password === "" && PGPASSWORD !== undefined) address.password = encodeURIComponent(PGPASSWORD);
  const hasUser = address.username !== "" || address.searchParams.has("user");
  if (address.password !== "" && !hasUser) problems.push(NO_USER);
  const ssl = tlsOf(mode ?? settings.PGSSLMODE, rootCert ?? settings.PGSSLROOTCERT, problems);
  return defined({ ...own, url: address.href, hosts: several?.hosts, targetSession: several?.target, ssl });
}

/** What to do where no database is set: other stores have tools of their own. */
function wayWithoutDatabase({ KURRENTDB_URL, OUTBOX_STORE }: Settings): string {
  if (KURRENTDB_URL !== undefined)
    return "this command needs a database. With KURRENTDB_URL, use `outbox-relay requests list`";
  if (OUTBOX_STORE !== undefined)
    return "this command needs a database. With OUTBOX_STORE, /health and /metrics of the relay show what waits, and `deadLetters()` of outbox-relay/redis-outbox lists dead letters";
  return "write postgres://user:password@host:5432/database, or set PGHOST and PGDATABASE";
}

/** The servers that the PG variables name, as libpq reads them: one port for all hosts, or one for each. */
function serversOf({ PGHOST, PGPORT, PGTARGETSESSIONATTRS }: Settings, problems: string[]): Partial<DatabaseOptions> {
  const names = (PGHOST ?? "localhost").split(",");
  const ports = typeof PGPORT === "string" ? PGPORT.split(",").map((port) => Number(port || USUAL_PORT)) : [PGPORT];
  if (ports.length > 1 && ports.length !== names.length) {
    problems.push(
      `PGPORT has ${ports.length} ports and PGHOST ${names.length} hosts: write one port for all hosts, or one for each`,
    );
  }
  const isOne = names.length === 1 && PGTARGETSESSIONATTRS === undefined;
  const hosts = names.map((host, place) => defined({ host, port: ports[ports.length === 1 ? 0 : place] }));
  return defined({
    host: PGHOST === undefined ? undefined : names[0],
    hosts: isOne ? undefined : hosts,
    port: ports[0],
    targetSession: PGTARGETSESSIONATTRS,
  });
}

/** Null for an address with a single host. */
function hostsOf(url: string, wanted: TargetSession | undefined, problems: string[]): SplitAddress | null {
  try {
    return splitHosts(url, wanted);
  } catch (error) {
    problems.push(`DATABASE_URL is invalid: ${reasonOf(error).replace(/ \[[A-Z_]+\].*$/, "")}`);
    return null;
  }
}

/** Warns of settings that have no effect but look as if they had. */
export function databaseWarnings(settings: Settings): string[] {
  if (settings.DATABASE_URL === undefined) return [];
  const unused = (["PGHOST", "PGPORT", "PGDATABASE"] as const).filter((name) => settings[name] !== undefined);
  return unused.length === 0 ? [] : [`${unused.join(", ")}: no effect, because DATABASE_URL is set`];
}

/** Requires both slashes: without them, user and password would become a path. */
function addressOf(text: string): URL | null {
  return /^postgres(?:ql)?:\/\//i.test(text) ? URL.parse(text) : null;
}

/**
 * Removes the TLS parameters from the address, because the driver interprets them in its own way: its `require` is
 * stricter than in every other client.
 */
function takeTls(address: URL, problems: string[]): { mode: Mode | undefined; rootCert: string | undefined } {
  const parameters = address.searchParams;
  const mode = parameters.get("sslmode") ?? undefined;
  const rootCert = parameters.get("sslrootcert") ?? undefined;
  parameters.delete("sslmode");
  parameters.delete("sslrootcert");
  if (mode === undefined || isMode(mode)) return { mode, rootCert };
  problems.push(`DATABASE_URL has sslmode=${mode}: write one of ${MODES.join(", ")}`);
  return { mode: undefined, rootCert };
}

function isMode(mode: string): mode is Mode {
  return (MODES as readonly string[]).includes(mode);
}

function tlsOf(mode: Mode | undefined, rootCertFile: string | undefined, problems: string[]): Tls | undefined {
  if (mode === undefined) return undefined;
  if (mode === "disable") return false;
  const ca = rootCertFile === undefined ? undefined : readRootCert(rootCertFile, problems);
  if (mode === "no-verify" || (mode === "require" && ca === undefined)) return { rejectUnauthorized: false };
  const trusted = ca === undefined ? {} : { ca };
  // As in libpq: `require` with a root certificate verifies the chain, and only verify-full the host name.
  return mode === "verify-full" ? trusted : { ...trusted, checkServerIdentity: () => undefined };
}

function readRootCert(path: string, problems: string[]): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    problems.push(`PGSSLROOTCERT names a file that cannot be read: ${reasonOf(error)}`);
    return undefined;
  }
}

function defined<T extends object>(options: T): { [Key in keyof T]: Exclude<T[Key], undefined> } {
  const entries = Object.entries(options).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [Key in keyof T]: Exclude<T[Key], undefined> };
}
