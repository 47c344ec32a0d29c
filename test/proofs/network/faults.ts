import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { promisify } from "node:util";
import { until } from "../../servers/until.ts";
import { HOSTS, type Host, type Network } from "./hosts.ts";

const run = promisify(execFile);

const DELAY_DEVICE = "delay0";
const DELAY_TABLE = "100";

/** What a commit looks like on the wire, from its first byte. */
const COMMITS = {
  // Kafka: after four bytes of length the number of the request, 26 for EndTxn.
  broker: "@ih,32,16 26",
  // PostgreSQL: a simple query that begins with "begi" and is long, so that it is a settle: begin, work and commit in one.
  database: "meta length > 1600 @ih,0,8 0x51 @ih,40,32 0x62656769",
} as const;

/** Faults of the network between the hosts, made in the router. They add up until `heal`. */
export interface NetworkFaults extends AsyncDisposable {
  /** Packets from one host to the other vanish; the other direction stays open. */
  cut(from: Host, to: Host): Promise<void>;
  /** Of all packets. */
  lose(percent: number): Promise<void>;
  /** Of every packet, one way. */
  delay(): Promise<void>;
  /**
   * Waits for the next commit of a relay and cuts one direction at this very packet, for some seconds: `request` lets
   * the commit vanish, `answer` lets it through and keeps the answer. False where none came in time.
   */
  cutAtCommit(relay: Host, to: keyof typeof COMMITS, what: "request" | "answer", timeoutMs: number): Promise<boolean>;
  heal(): Promise<void>;
}

export async function openFaults(network: Network, delayMs: number, cutSeconds: number): Promise<NetworkFaults> {
  const inRouter = (...command: readonly string[]) => {
    const [program = "", ...args] = [...network.on("router"), ...command];
    return run(program, args);
  };
  const nft = (rule: string) => inRouter("nft", rule);
  await nft(tableText(cutSeconds));
  const delayer = await startDelay(network, delayMs);
  await inRouter("ip", "link", "set", DELAY_DEVICE, "up");
  await inRouter("ip", "route", "add", "default", "dev", DELAY_DEVICE, "table", DELAY_TABLE);
  let isDelayed = false;
  const setDelay = async (on: boolean) => {
    if (on === isDelayed) return;
    isDelayed = on;
    for (const host of HOSTS) {
      await inRouter("ip", "rule", on ? "add" : "del", "iif", network.device(host), "lookup", DELAY_TABLE);
    }
  };
  const pair = (from: Host, to: Host) => `${network.address(from)} . ${network.address(to)}`;
  return {
    cut: async (from, to) => void (await nft(`add element ip faults blocked { ${pair(from, to)} }`)),
    lose: async (percent) => void (await nft(`add rule ip faults loss numgen random mod 100 < ${percent} drop`)),
    delay: () => setDelay(true),
    async cutAtCommit(relay, to, what, timeoutMs) {
      const [way, then] = what === "request" ? ["saddr . ip daddr", "drop"] : ["daddr . ip saddr", "accept"];
      const match = `ip saddr ${network.address(relay)} ip daddr ${network.address(to)} ${COMMITS[to]}`;
      await nft(`add rule ip faults traps ${match} add @cut { ip ${way} } ${then}`);
      const isCut = async () => (await nft("list set ip faults cut")).stdout.includes("elements");
      const hasFired = await until("a commit", isCut, timeoutMs).catch(() => false);
      await nft("flush chain ip faults traps"); // or the commit that is sent again would spring it again
      return hasFired;
    },
    async heal() {
      await setDelay(false);
      await nft(
        "flush chain ip faults traps; flush chain ip faults loss; flush set ip faults blocked; flush set ip faults cut",
      );
    },
    async [Symbol.asyncDispose]() {
      const exit = once(delayer, "exit");
      if (delayer.exitCode === null && delayer.signalCode === null && delayer.kill("SIGKILL")) await exit;
    },
  };
}

/** A packet that comes back from the delay has been counted and let through already. */
function tableText(cutSeconds: number): string {
  return `add table ip faults; add set ip faults cut { type ipv4_addr . ipv4_addr; flags dynamic,timeout; timeout ${cutSeconds}s; };
    add set ip faults blocked { type ipv4_addr . ipv4_addr; };
    add chain ip faults traps; add chain ip faults loss;
    add chain ip faults forward { type filter hook forward priority 0; policy accept; };
    add rule ip faults forward ip saddr . ip daddr @cut drop;
    add rule ip faults forward ip saddr . ip daddr @blocked drop;
    add rule ip faults forward iifname != "${DELAY_DEVICE}" jump loss;
    add rule ip faults forward iifname != "${DELAY_DEVICE}" jump traps`;
}

async function startDelay(network: Network, delayMs: number): Promise<ChildProcess> {
  const script = join(import.meta.dirname, "delay.py");
  const [program = "", ...args] = [...network.on("router"), "python3", script, DELAY_DEVICE, String(delayMs)];
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"] });
  await Promise.race([
    once(child.stdout, "data"),
    once(child, "exit").then(([code]) => Promise.reject(new Error(`delay.py ended with ${code}`))),
  ]);
  return child;
}
