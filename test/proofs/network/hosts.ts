import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { promisify } from "node:util";
import { installPrograms } from "../../servers/debian-programs.ts";
import { signalProcess } from "../../servers/scratch.ts";
import { until } from "../../servers/until.ts";

const run = promisify(execFile);

export const HOSTS = ["relay-1", "relay-2", "database", "broker"] as const;
export type Host = (typeof HOSTS)[number];

const PREFIX = "outbox-proof-";
/** Stands between all hosts: every packet from one to another passes here. */
const ROUTER = "router";

const WATCHDOG_MS = 5_000;

/** Each host is a network namespace of its own, with an address that exists nowhere else. */
export interface Network {
  readonly id: string;
  address(host: Host): string;
  /** What to put before a command so that it runs on this host. */
  on(host: Host | typeof ROUTER): readonly string[];
  /** The router's device towards the host. */
  device(host: Host): string;
}

export function networkOf(id: string): Network {
  return {
    id,
    address: (host) => `10.77.${HOSTS.indexOf(host) + 1}.2`,
    on: (host) => ["ip", "netns", "exec", `${id}-${host}`],
    device: (host) => `to-${host}`,
  };
}

/** What is missing on this machine, in words, or null. */
export async function whyNoNetwork(): Promise<string | null> {
  if (process.getuid?.() !== 0) return "network namespaces need root: run it with sudo";
  if (!existsSync("/dev/net/tun")) return "there is no /dev/net/tun, which the delay needs";
  await installPrograms("network faults", { ip: "iproute2", nft: "nftables", python3: "python3", kcat: "kcat" });
  return null;
}

export async function createNetwork(): Promise<Network> {
  await removeLeftovers();
  const network = networkOf(`${PREFIX}${process.pid}`);
  const router = `${network.id}-${ROUTER}`;
  await addHost(router);
  await run("ip", [
    ...["netns", "exec", router, "sysctl", "-qw", "net.ipv4.ip_forward=1"],
    ...["net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.default.rp_filter=0"],
  ]);
  for (const host of HOSTS) {
    const namespace = `${network.id}-${host}`;
    const device = network.device(host);
    const gateway = network.address(host).replace(/2$/, "1");
    await addHost(namespace);
    await ip(router, "link", "add", device, "type", "veth", "peer", "name", "eth0", "netns", namespace);
    await ip(router, "address", "add", `${gateway}/24`, "dev", device);
    await ip(router, "link", "set", device, "up");
    await ip(namespace, "address", "add", `${network.address(host)}/24`, "dev", "eth0");
    await ip(namespace, "link", "set", "eth0", "up");
    await ip(namespace, "route", "add", "default", "via", gateway);
  }
  return network;
}

async function addHost(namespace: string): Promise<void> {
  await run("ip", ["netns", "add", namespace]);
  await ip(namespace, "link", "set", "lo", "up");
}

async function ip(namespace: string, ...args: readonly string[]): Promise<void> {
  await run("ip", ["-n", namespace, ...args]);
}

/** The watchdog of the servers runs on a host too and gets its time; what is left on one of them then is ended. */
export async function removeNetwork({ id }: Pick<Network, "id">): Promise<void> {
  for (const namespace of await namespaces((name) => name.startsWith(`${id}-`))) {
    const pids = async () =>
      (await run("ip", ["netns", "pids", namespace])).stdout.split("\n").filter(Boolean).map(Number);
    await until("the watchdog is done", async () => (await pids()).length === 0, WATCHDOG_MS).catch(() => {});
    await until(`${namespace} is empty`, async () => {
      const left = await pids();
      for (const pid of left) signalProcess(pid, "SIGKILL");
      return left.length === 0;
    });
    await run("ip", ["netns", "delete", namespace]);
  }
}

/** Of runs that were killed before they could clean up. */
async function removeLeftovers(): Promise<void> {
  const pidOf = (name: string) => new RegExp(`^${PREFIX}(\\d+)-`).exec(name)?.[1];
  const ids = new Set((await namespaces((name) => pidOf(name) !== undefined)).map((name) => pidOf(name)!));
  for (const pid of ids) if (!existsSync(`/proc/${pid}`)) await removeNetwork({ id: `${PREFIX}${pid}` });
}

async function namespaces(fits: (name: string) => boolean): Promise<string[]> {
  const { stdout } = await run("ip", ["netns", "list"]);
  return stdout
    .split("\n")
    .map((line) => line.split(" ")[0] ?? "")
    .filter(fits);
}
