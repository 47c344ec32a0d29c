import { RelayError } from "../../core/errors.ts";

export interface KurrentDbCredentials {
  readonly username: string;
  readonly password: string;
}

/** A connection string that the client takes without a word, and what must never be shown of it. */
export interface KurrentDbAddress {
  readonly connectionString: string;
  /** Named at every read too: the client's reader takes an escape in the connection string for a part of the password. */
  readonly credentials: KurrentDbCredentials | null;
  /** Already in the connection string; of several, the last one counts. */
  readonly keepAliveTimeoutMs: number;
  /** Without user and password. */
  readonly shown: string;
  readonly secrets: readonly string[];
}

const FORM = /^(?:kurrentdb|kurrent|kdb|esdb|eventstoredb)(\+discover)?:\/\/(?:([^@/]*)@)?([^/?@]+)\/?(?:\?(.*))?$/i;
const HOST = /^[^\s:,/?#[\]@]+(?::\d{1,5})?$/;
const EXAMPLE = "kurrentdb://user:password@host:2113";

/**
 * A server that froze is given up after the sum of both. The client complains of pings more often than every 10 s,
 * which some servers take for an attack.
 */
const KEEP_ALIVE = { keepAliveInterval: "10000", keepAliveTimeout: "5000" } as const;

/** Other keys make the client print the whole string, password included. */
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
  if (hosts === "") throw invalid(`is no address of the form ${EXAMPLE}`);
  // Not quoted: with a slip in the address, the password stands where the host should.
  if (!hosts.split(",").every((host) => HOST.test(host))) throw invalid("names no host, or a port that is no number");
  const given = credentials ?? credentialsOf(user);
  const options = optionsOf(query);
  // Without TLS the server asks for none, and it would be sent for everybody to read.
  const used = options.get("tls") === "false" ? null : given;
  const login = used === null ? "" : `${encodeURIComponent(used.username)}:${encodeURIComponent(used.password)}@`;
  const text = [...options].map(([key, value]) => `${key}=${encodeURIComponent(value)}`).join("&");
  return {
    // The former name of the product still works, but the client warns of it each time.
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
    throw invalid("has a % in user or password that is no escape: write it as %25");
  }
}

function optionsOf(query: string): ReadonlyMap<string, string> {
  const options = new Map<string, string>(Object.entries(KEEP_ALIVE));
  for (const [written, value] of new URLSearchParams(query)) {
    const key = KEYS.get(written.toLowerCase());
    if (key === undefined) throw invalid(`has the unknown option ${JSON.stringify(written)}`);
    if (value === "") throw invalid(`has the option ${key} without a value`);
    if (key.startsWith("keepAlive") && !/^\d{1,9}$/.test(value)) throw invalid(`has a ${key} that is no number of ms`);
    if (key === "nodePreference" && value.toLowerCase() !== "leader") {
      throw invalid("has a nodePreference other than leader: a follower may not have yet what the relay knows already");
    }
    options.set(key, value);
  }
  return options;
}

function invalid(what: string): RelayError {
  return new RelayError("CONFIG_INVALID", `The address of KurrentDB ${what}.`);
}
