import { lookup as systemLookup } from "node:dns";
import { BlockList, isIP, type LookupFunction } from "node:net";

/** An event named a host that it must not reach. */
export class ForbiddenHost extends Error {}

type Subnet = readonly [network: string, bits: number];

/** Private networks, where services often trust every client that can reach them. */
const PRIVATE_V4: readonly Subnet[] = [
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["172.16.0.0", 12],
  ["192.168.0.0", 16],
];
const PRIVATE_V6: readonly Subnet[] = [
  // Loopback, and the deprecated IPv4-compatible form.
  ["::", 96],
  ["fc00::", 7],
];

/** Never allowed: this host, link-local (cloud metadata with credentials), reserved, multicast. */
const NEVER_V4: readonly Subnet[] = [
  ["0.0.0.0", 8],
  ["169.254.0.0", 16],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4],
];
const NEVER_V6: readonly Subnet[] = [
  ["::", 128],
  ["64:ff9b:1::", 48],
  ["100::", 64],
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
  ["5f00::", 16],
  ["fe80::", 10],
  ["fec0::", 10],
  ["ff00::", 8],
];

const never = blockList(NEVER_V4, NEVER_V6);
const neverOrPrivate = blockList([...NEVER_V4, ...PRIVATE_V4], [...NEVER_V6, ...PRIVATE_V6]);

function blockList(v4: readonly Subnet[], v6: readonly Subnet[]): BlockList {
  const list = new BlockList();
  for (const [network, bits] of v4) {
    list.addSubnet(network, bits, "ipv4");
    // The same hosts behind NAT64. Node itself handles the IPv4-mapped form.
    list.addSubnet(`64:ff9b::${network}`, 96 + bits, "ipv6");
  }
  for (const [network, bits] of v6) list.addSubnet(network, bits, "ipv6");
  return list;
}

interface GuardOptions {
  readonly allowPrivate: boolean;
  /** In lower case; null: any. */
  readonly allowedHosts: readonly string[] | null;
}

/** Throws ForbiddenHost when an event must not name this host. `hostname` is that of a parsed URL. */
export function checkHost(hostname: string, { allowPrivate, allowedHosts }: GuardOptions): void {
  const host = hostname.replace(/^\[(.*)\]$/, "$1").replace(/\.$/, "");
  if (allowedHosts !== null && !allowedHosts.some((pattern) => fits(pattern, host))) {
    throw new ForbiddenHost(`the event names the host ${host}, which is not among HTTP_ALLOWED_HOSTS`);
  }
  if (isIP(host) !== 0) checkAddress(host, host, allowPrivate);
}

function fits(pattern: string, host: string): boolean {
  return pattern.startsWith("*.") ? host.endsWith(pattern.slice(1)) : host === pattern;
}

/**
 * Resolves a host and rejects it if any of its addresses is forbidden. The connection uses the returned address, so
 * that a second DNS answer cannot redirect it (DNS rebinding).
 */
export function guardedLookup(allowPrivate: boolean, lookup: LookupFunction | null): LookupFunction {
  const resolve = lookup ?? (systemLookup as LookupFunction);
  return (hostname, options, callback) => {
    resolve(hostname, { ...options, all: true }, (error, found) => {
      if (error) return callback(error, []);
      const addresses = Array.isArray(found) ? found : [];
      try {
        for (const { address } of addresses) checkAddress(hostname, address, allowPrivate);
      } catch (forbidden) {
        return callback(forbidden as Error, []);
      }
      if (options.all) return callback(null, addresses);
      const [first] = addresses;
      callback(
        first === undefined ? new Error(`${hostname} has no address`) : null,
        first?.address ?? "",
        first?.family,
      );
    });
  };
}

function checkAddress(host: string, written: string, allowPrivate: boolean): void {
  const address = written.replace(/%.*$/, "");
  const family = isIP(address);
  const list = allowPrivate ? never : neverOrPrivate;
  if (family !== 0 && !list.check(address, family === 6 ? "ipv6" : "ipv4")) return;
  const where = host === written ? "" : ` (${written})`;
  throw new ForbiddenHost(
    `the event names the host ${host}${where}, which is private or reserved: events may only name public hosts`,
  );
}
