import pg from "pg";
import { RelayError } from "../core/errors.ts";

/** One of the servers that can host the database. */
export interface DatabaseHost {
  readonly host: string;
  readonly port?: number;
}

/** `any`: the first that responds. Otherwise the first that is not a standby. */
export type TargetSession = "any" | "read-write" | "primary";
export const TARGET_SESSIONS = ["any", "read-write", "primary"] as const satisfies readonly TargetSession[];

/** A connection string with several hosts, taken apart. */
export interface SplitAddress {
  /** The address with the first host only. */
  readonly url: string;
  readonly hosts: readonly DatabaseHost[];
  readonly target: TargetSession;
}

/**
 * Splits `postgres://user@one:5432,two/db?target_session_attrs=read-write`; null for an address with one host and
 * no such requirement. An attribute in the address wins over `wanted`. Without either it requires a server that accepts
 * writes, because the relay writes. Throws CONFIG_INVALID.
 */
export function splitHosts(url: string, wanted?: TargetSession): SplitAddress | null {
  const match = /^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)([^/?#@]*)(.*)$/is.exec(url);
  if (match === null) return null;
  const [, front = "", list = "", rest = ""] = match;
  const written = /([?&])target_session_attrs=([^&#]*)(&?)/i.exec(rest);
  const target = (written?.[2] ?? wanted ?? "read-write").toLowerCase();
  if (!isTarget(target)) {
    const what = `The database address has target_session_attrs=${target}; the relay accepts`;
    throw new RelayError("CONFIG_INVALID", `${what} ${TARGET_SESSIONS.join(", ")}`);
  }
  if (!list.includes(",") && written === null && wanted === undefined) return null;
  const [plain = rest] =
    written === null ? [rest] : [rest.replace(written[0], written[3] === "" ? "" : (written[1] ?? ""))];
  const hosts = list.split(",").map(hostOf);
  return { url: `${front}${list.split(",")[0]}${plain}`, hosts, target };
}

function isTarget(text: string): text is TargetSession {
  return (TARGET_SESSIONS as readonly string[]).includes(text);
}

function hostOf(text: string): DatabaseHost {
  const match = /^(\[[0-9a-f:.]+\]|[^:]+)(?::(\d{1,5}))?$/i.exec(text.trim());
  if (match === null) {
    const what = `${JSON.stringify(text)} in the database address is not host:port`;
    throw new RelayError("CONFIG_INVALID", `${what}; write several hosts as one:5432,two:5432`);
  }
  const host = decodeURIComponent(match[1]!.replace(/^\[|\]$/g, ""));
  return match[2] === undefined ? { host } : { host, port: Number(match[2]) };
}

/**
 * A pool that searches its server among several hosts, in order: at the first connection, when a connection fails, and
 * when the server stops accepting writes. All other connections to the database use the host in the pool's options.
 */
export class HostPool extends pg.Pool {
  readonly #hosts: readonly DatabaseHost[];
  readonly #target: TargetSession;
  #isChosen = false;
  #choosing: Promise<void> | null = null;

  constructor(config: pg.PoolConfig, hosts: readonly DatabaseHost[], target: TargetSession) {
    super(config);
    this.#hosts = hosts;
    this.#target = target;
  }

  /** The server is gone or became a standby: the next connection searches the hosts again. */
  lookAgain(): void {
    this.#isChosen = false;
  }

  override connect(): Promise<pg.PoolClient>;
  override connect(callback: ConnectCallback): void;
  override connect(callback?: ConnectCallback): Promise<pg.PoolClient> | undefined {
    const connected = this.#connect();
    if (callback === undefined) return connected;
    connected.then(
      (client) => callback(undefined, client, (release) => client.release(release as boolean)),
      (error: Error) => callback(error, undefined, () => {}),
    );
    return undefined;
  }

  async #connect(): Promise<pg.PoolClient> {
    if (!this.#isChosen) await this.#choose();
    try {
      return await super.connect();
    } catch (error) {
      // An exhausted pool does not mean that the server is gone.
      if (error instanceof Error && /timeout exceeded/.test(error.message)) throw error;
      await this.#choose();
      return await super.connect();
    }
  }

  /** One search serves all callers that wait for it. */
  #choose(): Promise<void> {
    this.#choosing ??= this.#find().finally(() => {
      this.#choosing = null;
    });
    return this.#choosing;
  }

  async #find(): Promise<void> {
    const refusals: unknown[] = [];
    for (const host of this.#hosts) {
      const place = placeOf(host, this.options.connectionString);
      try {
        await probe({ ...this.options, password: this.options.password, ...place } as pg.ClientConfig, this.#target);
        Object.assign(this.options, place);
        this.#isChosen = true;
        return;
      } catch (error) {
        refusals.push(error);
      }
    }
    // A host that responds as a standby is more informative than one that does not respond.
    throw refusals.find((error) => error instanceof StandbyError) ?? refusals.at(-1);
  }
}

type ConnectCallback = (
  error: Error | undefined,
  client: pg.PoolClient | undefined,
  done: (release?: unknown) => void,
) => void;

class StandbyError extends Error {}

/** The client settings for this host. The driver prefers what is in a connection string. */
function placeOf({ host, port }: DatabaseHost, connectionString: string | undefined): pg.ClientConfig {
  if (connectionString === undefined) return port === undefined ? { host } : { host, port };
  const address = new URL(connectionString);
  // The directory of a Unix socket is a host too, written as %2Ftmp.
  address.hostname = host.includes(":") ? `[${host}]` : encodeURIComponent(host);
  address.port = port === undefined ? "" : String(port);
  return { connectionString: address.href };
}

async function probe(config: pg.ClientConfig, target: TargetSession): Promise<void> {
  const client = new pg.Client(config);
  client.on("error", () => {});
  try {
    await client.connect();
    if (target === "any") return;
    const { rows } = await client.query<[unknown]>({ text: "select pg_catalog.pg_is_in_recovery()", rowMode: "array" });
    if (String(rows[0]?.[0]).startsWith("t")) {
      throw new StandbyError(`no host of the database accepts writes: ${client.host}:${client.port} is a standby`);
    }
  } finally {
    await client.end().catch(() => {});
  }
}
