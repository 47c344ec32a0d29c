import { randomUUID } from "node:crypto";
import pg from "pg";
import { RelayError } from "../core/errors.ts";
import { Semaphore } from "../core/semaphore.ts";
import type { ErrorContext } from "./errors.ts";
import { type DatabaseHost, HostPool, splitHosts, type TargetSession } from "./hosts.ts";
import { quoteIdentifier } from "./identifiers.ts";
import { DEFAULT_RELAY_SCHEMA, type RelayTables, relayTables } from "./relay-tables.ts";

/** How to connect to a database. */
export interface DatabaseOptions {
  /** A connection string; missing parts come from the other options, then from the PG* variables. */
  readonly url?: string;
  /** Several servers, tried in order; an address with several hosts means the same. They win over `host` and `port`. */
  readonly hosts?: readonly DatabaseHost[];
  /** Which of several servers is acceptable; by default one that accepts writes. */
  readonly targetSession?: TargetSession;
  readonly host?: string;
  readonly port?: number;
  readonly database?: string;
  readonly user?: string;
  readonly password?: string | (() => string | Promise<string>);
  readonly ssl?: pg.PoolConfig["ssl"];
  readonly applicationName?: string;
  /** The relay's own schema. */
  readonly relaySchema?: string;
  /** Connections for work, besides the one for the heartbeat; half of them are reserved for writing. */
  readonly connectionsMax?: number;
  readonly timeouts?: Partial<DatabaseTimeouts>;
}

export interface DatabaseTimeouts {
  readonly connectMs: number;
  /**
   * For everything that writes. Keep it below half the lease, so that a late write finds its lane taken over, not idle.
   */
  readonly statementMs: number;
  readonly lockMs: number;
  /** For reading only: the first page of a table without a suitable index may need a sort. */
  readonly readMs: number;
  /** How long a run can idle inside its transaction before the server ends it, in case the process was suspended. */
  readonly idleInRunMs: number;
}

const DEFAULT_TIMEOUTS: DatabaseTimeouts = {
  connectMs: 5_000,
  statementMs: 4_000,
  lockMs: 2_000,
  readMs: 30_000,
  idleInRunMs: 60_000,
};

/** One database with all connections that the relay has to it. Several sources share one. */
export interface Database {
  /** Equal for equal targets: host, port, database and the relay's schema. */
  readonly id: string;
  readonly role: string;
  readonly relaySchema: string;
  readonly tables: RelayTables;
  readonly timeouts: DatabaseTimeouts;
  readonly pool: pg.Pool;
  /** A separate connection, so that the heartbeat never waits behind work. */
  readonly control: pg.Pool;
  /** Limits the runs, which hold a connection for seconds: if they had all connections, settles would wait for runs. */
  readonly runs: Semaphore;
  errorContext(doing: string, table?: string): ErrorContext;
  /** Closes the connections when the last user has closed. Safe to repeat. */
  close(): Promise<void>;
}

/** Every value stays the text that the server sent: nothing is parsed twice or loses precision. */
const textOnly = { getTypeParser: () => (value: unknown) => value } as unknown as pg.CustomTypesConfig;

const shared = new Map<string, { database: Database; users: number }>();

/**
 * The caller's own database, which stays open when the source is closed, or one that is opened and closed with the
 * source.
 */
export function databaseOf(given: Database | DatabaseOptions): { readonly database: Database; close(): Promise<void> } {
  if ("pool" in given) return { database: given, close: async () => {} };
  const database = openDatabase(given);
  return { database, close: () => database.close() };
}

/**
 * Opens a database, or joins the open one with equal options. Each call has its own `close`; the connections end with
 * the last. It connects at the first statement.
 */
export function openDatabase(options: DatabaseOptions): Database {
  const key = sharingKey(options);
  const entry = shared.get(key) ?? { database: connect(options), users: 0 };
  shared.set(key, entry);
  entry.users += 1;
  let closed = false;
  return {
    ...entry.database,
    close: async () => {
      if (closed) return;
      closed = true;
      entry.users -= 1;
      if (entry.users > 0) return;
      shared.delete(key);
      await entry.database.close();
    },
  };
}

/** Functions cannot be compared, so options that contain one are never shared. */
function sharingKey(options: DatabaseOptions): string {
  let isUnique = false;
  const key = JSON.stringify(options, (_, value: unknown) => {
    if (typeof value === "function") isUnique = true;
    return value;
  });
  return isUnique ? randomUUID() : key;
}

function connect(options: DatabaseOptions): Database {
  const config = poolConfig(options);
  const relaySchema = options.relaySchema ?? DEFAULT_RELAY_SCHEMA;
  quoteIdentifier(relaySchema);
  const connectionsMax = options.connectionsMax ?? 4;
  if (!Number.isInteger(connectionsMax) || connectionsMax < 2) {
    throw new RelayError("CONFIG_INVALID", `connectionsMax is ${connectionsMax}; it must be a whole number from 2`);
  }
  // Never connected: it only resolves string, options and environment as the pool will.
  const target = new pg.Client(config);
  const role = target.user ?? "";
  const servers = serversOf(options);
  const pool = quietPool({ ...config, max: connectionsMax }, servers);
  const control = quietPool({ ...config, max: 1, application_name: `${config.application_name} heartbeat` }, servers);
  const place = servers === null ? `${target.host}:${target.port}` : servers.hosts.map(printHost).join(",");
  return {
    id: `${place}/${target.database}#${relaySchema}`,
    role,
    relaySchema,
    tables: relayTables(relaySchema),
    timeouts: { ...DEFAULT_TIMEOUTS, ...options.timeouts },
    pool,
    control,
    runs: new Semaphore(Math.floor(connectionsMax / 2)),
    errorContext: (doing, table) => ({ doing, table, role, relaySchema }),
    close: async () => {
      await Promise.all([pool.end(), control.end()]);
    },
  };
}

interface Servers {
  readonly hosts: readonly DatabaseHost[];
  readonly target: TargetSession;
}

/** Null for the usual case of one server. */
function serversOf({ hosts, targetSession, url }: DatabaseOptions): Servers | null {
  const split = url === undefined ? null : splitHosts(url);
  const all = hosts ?? split?.hosts ?? [];
  return all.length === 0 ? null : { hosts: all, target: targetSession ?? split?.target ?? "read-write" };
}

const printHost = ({ host, port }: DatabaseHost): string => `${host}:${port ?? ""}`;

function poolConfig(options: DatabaseOptions): pg.PoolConfig {
  const { url, host, port, database, user, password, ssl } = options;
  const connectionString = url === undefined ? undefined : (splitHosts(url)?.url ?? url);
  const given = { connectionString, host, port, database, user, password, ssl };
  const config: pg.PoolConfig = {
    application_name: options.applicationName ?? "outbox-relay",
    connectionTimeoutMillis: options.timeouts?.connectMs ?? DEFAULT_TIMEOUTS.connectMs,
    idleTimeoutMillis: 30_000,
    // Idle connections do not keep a process alive that has stopped its relay.
    allowExitOnIdle: true,
    keepAlive: true,
    types: textOnly,
  };
  return Object.assign(config, Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)));
}

/**
 * A connection that breaks while no statement runs emits 'error', which would end the process without a listener; that
 * includes checked-out connections between the pages of a run. The next statement on it fails anyway.
 */
function quietPool(config: pg.PoolConfig, servers: Servers | null): pg.Pool {
  const pool = servers === null ? new pg.Pool(config) : new HostPool(config, servers.hosts, servers.target);
  pool.on("error", () => {});
  pool.on("connect", (client) => client.on("error", () => {}));
  return pool;
}
