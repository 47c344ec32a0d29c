import { RelayError } from "../../core/errors.ts";

/** User and password, instead of those in the address. */
export interface KurrentDbCredentials {
  readonly username: string;
  readonly password: string;
}

/** A connection string that the client accepts as it is, and the parts of it that must never be logged. */
export interface KurrentDbAddress {
  readonly connectionString: string;
  /**
   * Passed with every read too: the client's reader treats an escape in the connection string as part of the password.
   */
  readonly credentials: KurrentDbCredentials | null;
  /** Already in the connection string; of several values, the last one counts. */
  readonly keepAliveTimeoutMs: number;
  /** Without user and password, for messages. */
  readonly shown: string;
  readonly secrets: readonly string[];
}

const FORM = /^(?:kurrentdb|kurrent|kdb|esdb|eventstoredb)(\+discover)?:\/\/(?:([^@/]*)@)?([^/?@]+)\/?(?:\?(.*))?$/i;
const HOST = /^[^\s:,/?#[\]@]+(?::\d{1,5})?$/;
const EXAMPLE = "kurrentdb://user:password@host:2113";

/**
 * After the sum of both, the client gives up on a frozen server. It warns about pings more often than every 10 s, which
 * some servers treat as an attack.
 */
const KEEP_ALIVE = { keepAliveInterval: "10000", keepAliveTimeout: "5000" } as const;

/** The allowed options. For any other key the client would print the whole string, password included. */
const KEYS: ReadonlyMap<string, string> = new Map(
  [
    ...["tls", "tlsVerifyCert", "tlsCAFile", "userCertFile", "userKeyFile", "connectionName", "nodePreference"],
    ...["defaultDeadline", "keepAliveInterval", "keepAliveTimeout"],
    ...["maxDiscoverAttempts", "discoveryInterval", "gossipTimeout"],
  ].map((key) => [key.toLowerCase(), key]),
);

/** Throws CONFIG_INVALID; the message names the part that is wrong, and never the password. */
export function kurrentdbAddress(url: string, credentials?: KurrentDbCredentials): KurrentDbAddress {
  const [, discover = "", user, hosts = "", query = ""] = FORM.exec(url.trim()) ?? [];
  if (hosts === "") throw invalid(`is not of the form ${EXAMPLE}`);
  // Do not quote the host: after a typo in the address, the password can stand where the host should.
  if (!hosts.split(",").every((host) => HOST.test(host))) throw invalid("has no host, or a port that is not a number");
  const given = credentials ?? credentialsOf(user);
  const options = optionsOf(query);
  // Without TLS the server requires no password, and sending it would expose it on the network.
  const used = options.get("tls") === "false" ? null : given;
  const login = used === null ? "" : `${encodeURIComponent(used.username)}:${encodeURIComponent(used.password)}@`;
  const text = [...options].map(([key, value]) => `${key}=${encodeURIComponent(value)}`).join("&");
  return {
    // The product's former name still works, but the client logs a warning each time.
    connectionString: `kurrentdb${discover}://${login}${hosts}?${text}`,
    credentials: used,
    keepAliveTimeoutMs: Number(options.get("keepAliveTimeout")),
    shown: `kurrentdb${discover}://${hosts}`,
    secrets: given === null ? [] : [given.password, encodeURIComponent(given.password)].filter((it) => it !== ""),
  };
}

function credentialsOf(user: string | undefined): KurrentDbCredentials | null {
  if (user === undefined) return null;
  const [username = "", password = "", ...rest] = user.split(":");
  if (username === "" || password === "" || rest.length > 0) {
    throw invalid("has a user without a password, or a colon in one of them: write it as %3A");
  }
  try {
    return { username: decodeURIComponent(username), password: decodeURIComponent(password) };
  } catch {
    throw invalid("has an unescaped % in user or password: write it as %25");
  }
}

function optionsOf(query: string): ReadonlyMap<string, string> {
  const options = new Map<string, string>(Object.entries(KEEP_ALIVE));
  for (const [written, value] of new URLSearchParams(query)) {
    const key = KEYS.get(written.toLowerCase());
    if (key === undefined) throw invalid(`has the unknown option ${JSON.stringify(written)}`);
    if (value === "") throw invalid(`has the option ${key} without a value`);
    if (key.startsWith("keepAlive") && !/^\d{1,9}$/.test(value))
      throw invalid(`has a ${key} that is not a number of milliseconds`);
    if (key === "nodePreference" && value.toLowerCase() !== "leader") {
      throw invalid(
        "has a nodePreference other than leader: a follower may lag behind what the relay has already read",
      );
    }
    options.set(key, value);
  }
  return options;
}

function invalid(what: string): RelayError {
  return new RelayError("CONFIG_INVALID", `The KurrentDB address ${what}.`);
}
