import { nearestName } from "../../routing/nearest-name.ts";
import type { WrittenDestination } from "./destination-scheme.ts";

/** A parsed destination address. */
export interface Address {
  readonly scheme: string;
  /** `host:port` each; never empty. */
  readonly hosts: readonly string[];
  readonly username: string | null;
  readonly password: string | null;
  /** Decoded, without the leading slash. */
  readonly path: string;
  readonly parameters: ReadonlyMap<string, string>;
}

interface AddressRules {
  readonly defaultPort: number;
  /** The known query parameters. */
  readonly parameters: readonly string[];
}

const ADDRESS = /^([a-z][a-z0-9+.-]*):\/\/(?:([^@/?#]*)@)?([^/?#]+)(?:\/([^?#]*))?(?:\?([^#]*))?$/i;
const HOST = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::(\d{1,5}))?$/i;

/** Parses `scheme://user:password@host:port,host:port/path?name=value`; null when `problems` say what is wrong. */
export function parseAddress(written: WrittenDestination, rules: AddressRules): Address | null {
  const { address, problems, setting } = written;
  const [, scheme, login, hostList, path = "", query = ""] = ADDRESS.exec(address) ?? [];
  if (scheme === undefined || hostList === undefined) {
    problems.push(
      `${setting} is not an address of the form ${/^[a-z0-9+.-]+/i.exec(address)?.[0] ?? "scheme"}://host:port`,
    );
    return null;
  }
  const hosts = hostList.split(",").map((host) => hostAndPort(host.trim(), rules.defaultPort));
  if (hosts.includes(null)) {
    problems.push(`${setting} has a host that is not of the form host:port`);
    return null;
  }
  const parameters = new Map(new URLSearchParams(query));
  const unknown = [...parameters.keys()].filter((name) => !rules.parameters.includes(name));
  for (const name of unknown) problems.push(`${setting} has the parameter ${name}: ${hint(name, rules.parameters)}`);
  const [username = null, password = null] = login === undefined ? [] : splitOnce(login).map(decoded);
  if (unknown.length > 0) return null;
  const known = hosts.filter((host) => host !== null);
  return { scheme: scheme.toLowerCase(), hosts: known, username, password, path: decoded(path) ?? "", parameters };
}

/** `host:port`; null for an invalid host or port. */
export function hostAndPort(written: string, defaultPort: number): string | null {
  const [, host, digits] = HOST.exec(written) ?? [];
  const port = Number(digits ?? defaultPort);
  return host !== undefined && port > 0 && port < 65_536 ? `${host}:${port}` : null;
}

function splitOnce(login: string): readonly (string | null)[] {
  const at = login.indexOf(":");
  return at < 0 ? [login, null] : [login.slice(0, at), login.slice(at + 1)];
}

function decoded(text: string | null): string | null {
  if (text === null) return null;
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function hint(name: string, known: readonly string[]): string {
  const nearest = nearestName(name, known);
  if (nearest !== undefined) return `did you mean ${nearest}?`;
  return known.length === 0 ? "this address takes none" : `known are ${known.join(", ")}`;
}
