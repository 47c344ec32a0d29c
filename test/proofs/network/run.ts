// The proof for networks that fail: npm run prove:network -- --seconds 120
// Ends with 0 when a reader on the broker's own host found every event once, in order, and nothing else.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { parseArgs } from "node:util";
import { conclude, describeVerdict, refuse, startLog } from "../progress.ts";
import { createNetwork, networkOf, removeNetwork, whyNoNetwork } from "./hosts.ts";
import { proveNetwork } from "./proof.ts";

const USAGE = `usage: npm run prove:network -- [--seconds 120] [--seed N] [--source flag|managed|wal] [--at-least-once]

Two relays, PostgreSQL and Kafka run in network namespaces of their own, and for so many seconds the way between them is
cut in one direction, loses packets, is slow, or is cut at the packet that carries a commit. It needs root.
A seed draws the same faults again; when exactly they fall is up to the machine.
--at-least-once takes the guarantee away: then duplicates are likely, and the run fails when it finds some.`;

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "120" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    source: { type: "string", default: "flag" },
    "at-least-once": { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});
const [seconds, seed] = [Number(values.seconds), Number(values.seed)];
const source = (["flag", "managed", "wal"] as const).find((it) => it === values.source);
if (values.help || !(seconds > 0) || !Number.isInteger(seed) || source === undefined) refuse(USAGE);

const inside = process.env.OUTBOX_PROOF_NETWORK;
await (inside === undefined ? openHosts() : prove(inside));

/** The proof itself runs on the broker's host, where its reader and its writer of topics are at home. */
async function openHosts(): Promise<void> {
  const why = await whyNoNetwork();
  if (why !== null) refuse(why);
  const network = await createNetwork();
  const [program = "", ...before] = network.on("broker");
  const child = spawn(program, [...before, process.execPath, ...process.argv.slice(1)], {
    env: { ...process.env, OUTBOX_PROOF_NETWORK: network.id },
    stdio: "inherit",
  });
  // A terminal's Ctrl-C reaches the child too; a signal to this process alone is passed on.
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => child.kill(signal));
  const [code] = await once(child, "exit");
  await removeNetwork(network);
  process.exitCode = code ?? 1;
}

async function prove(id: string): Promise<void> {
  const again = [
    `npm run prove:network -- --seconds ${seconds} --seed ${seed} --source ${source}`,
    ...(values["at-least-once"] ? ["--at-least-once"] : []),
  ].join(" ");
  const log = startLog();
  log(`again with: ${again}`);
  const delivery = values["at-least-once"] ? "at-least-once" : "exactly-once";
  const report = await proveNetwork({ network: networkOf(id), seconds, seed, source: source!, delivery, log });
  const faults = Object.entries(report.faults).map(([name, count]) => `${count} ${name}`);
  console.log(`\nfaults: ${faults.join(", ")}; ${report.commitsCut} commits cut at their packet`);
  console.log(describeVerdict(report.verdict));
  conclude(report.verdict.violations.length === 0, again);
}
