import { randomUUID } from "node:crypto";
import pg from "pg";
import { RelayError } from "../core/errors.ts";
import type { ErrorContext } from "./errors.ts";
import { Gate } from "./gate.ts";
import { type DatabaseHost, HostPool, splitHosts, type TargetSession } from "./hosts.ts";
import { quoteIdentifier } from "./identifiers.ts";
import { DEFAULT_RELAY_SCHEMA, type RelayTables, relayTables } from "./relay-tables.ts";

export interface DatabaseOptions {
  /** A connection string; what it leaves open comes from the other options, then from the PG* variables. */
  readonly url?: string;
  /** Several servers, tried in order; an address with several hosts says the same. They win over `host` and `port`. */
  readonly hosts?: readonly DatabaseHost[];
  /** Which of several servers will do; by default one that takes writes. */
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
  /** Connections for work, besides the one for the heartbeat; half of them are kept for writing. */
  readonly connectionsMax?: number;
  readonly timeouts?: Partial<DatabaseTimeouts>;
}

interface DatabaseTimeouts {
  readonly connectMs: number;
  /** For everything that writes. Below half the lease, so that a late write finds its lane taken over, not idle. */
  readonly statementMs: number;
  readonly lockMs: number;
  /** For reading only, where the first page of a table without a fitting index may need a sort. */
  readonly readMs: number;
  /** How long a run may rest inside its transaction before the server ends it: the process was suspended. */
  readonly idleInRunMs: number;
}

const DEFAULT_TIMEOUTS: DatabaseTimeouts = {
  connectMs: 5_000,
  statementMs: 4_000,
  lockMs: 2_000,
  readMs: 30_000,
  idleInRunMs: 60_000,
};

/** One target database with all connections that the relay has to it. Several sources share one. */
export interface Database {
  /** Equal for equal targets: host, port, database and the relay's schema. */
  readonly id: string;
  readonly role: string;
  readonly relaySchema: string;
  readonly tables: RelayTables;
  readonly timeouts: DatabaseTimeouts;
  readonly pool: pg.Pool;
  /** One connection of its own, so that the heartbeat never waits behind work. */
  readonly control: pg.Pool;
  /** Runs hold a connection for seconds. They may never have all of them, or settles would wait for runs. */
  readonly runs: Gate;
  errorContext(doing: string, table?: string): ErrorContext;
  /** Ends the connections when the last user closed. Legal to repeat. */
  close(): Promise<void>;
}

/** Every value arrives as the text that the server sent: nothing is parsed twice, nothing loses precision. */
const textOnly = { getTypeParser: () => (value: unknown) => value } as unknown as pg.CustomTypesConfig;

const shared = new Map<string, { database: Database; users: number }>();

/**
 * Opens a database, or joins the one that is open already under equal options. Each call has a close of its own; the
 * connections end with the last. Nothing is sent before the first statement.
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

/** Whether two functions do the same nobody can tell: options with one are equal to nothing. */
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
  // Not connected: it only resolves the string, the options and the environment the way the pool will.
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
    runs: new Gate(Math.floor(connectionsMax / 2)),
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
    keepAlive: true,
    types: textOnly,
  };
  return Object.assign(config, Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)));
}

/**
 * A connection that breaks while nobody waits for an answer emits 'error', which would end the process without a
 * listener: also while it is checked out, as in the pauses of a run. The next statement on it fails anyway.
 */
function quietPool(config: pg.PoolConfig, servers: Servers | null): pg.Pool {
  const pool = servers === null ? new pg.Pool(config) : new HostPool(config, servers.hosts, servers.target);
  pool.on("error", () => {});
  pool.on("connect", (client) => client.on("error", () => {}));
  return pool;
}
