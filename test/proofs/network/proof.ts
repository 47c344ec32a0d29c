import { execFile } from "node:child_process";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pauseMs } from "node:timers/promises";
import { promisify } from "node:util";
import pg from "pg";
import { SeededRandom } from "../../../src/testing/simulator/seeded-random.ts";
import type { SourceKind } from "../../chaos/exactly-once/proved-outbox.ts";
import type { Verdict } from "../../chaos/exactly-once/verdict.ts";
import type { Place } from "../../e2e/stage.ts";
import { startKafka } from "../../servers/kafka.ts";
import { startPostgres } from "../../servers/postgres.ts";
import { createScratch } from "../../servers/scratch.ts";
import { openServiceScene } from "../service-scene.ts";
import { type NetworkFaults, openFaults } from "./faults.ts";
import type { Host, Network } from "./hosts.ts";

const run = promisify(execFile);

const FAULTS = [
  ...["relay to database", "database to relay", "relay to broker", "broker to relay"],
  ...["all of one relay", "loss", "delay", "commit at the broker", "commit in the database"],
] as const;

type Fault = (typeof FAULTS)[number];

const RELAYS = ["relay-1", "relay-2"] as const;
const LOSS_PERCENT = 5;
const DELAY_MS = 200;
/** Well beyond it the other relay has taken everything over. */
const LEASE_SECONDS = 5;
const FAULT_MS = { min: 1_000, max: 12_000 } as const;
/** A fault that lasts longer should be seen. */
const HEALTH_AFTER_MS = 6_000;
const COMMIT_WAIT_MS = 10_000;
const PORT = 3_012;

export interface NetworkProofOptions {
  readonly network: Network;
  readonly seconds: number;
  readonly seed: number;
  readonly source: SourceKind;
  /** `at-least-once` takes the guarantee away: the reader must then find duplicates. */
  readonly delivery: "exactly-once" | "at-least-once";
  readonly log: (line: string) => void;
}

export interface NetworkReport {
  readonly verdict: Verdict;
  readonly faults: Readonly<Record<string, number>>;
  /** Commits that were cut at their very packet. */
  readonly commitsCut: number;
}

/** Two relays, a database and a broker on hosts of their own, and everything that a network does to them. */
export async function proveNetwork(options: NetworkProofOptions): Promise<NetworkReport> {
  const { network, seed, source, log } = options;
  await using started = new AsyncDisposableStack();
  const kafka = started.use(
    await startKafka({
      host: network.address("broker"),
      properties: {
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1_000,
        "auto.create.topics.enable": false,
      },
    }),
  );
  const place = await startDatabase(network, started);
  const env = { INSTANCE_LEASE: `${LEASE_SECONDS}s`, BATCH_SIZE: "50", POLL_INTERVAL_MS: "100" };
  const scene = started.use(
    await openServiceScene({ place, kafka, seed, source, env: { ...env, DELIVERY: options.delivery } }),
  );
  const faults = started.use(await openFaults(network, DELAY_MS, LEASE_SECONDS + 2));
  for (const host of RELAYS) scene.start({ PORT: String(PORT), RELAY_ID: host }, network.on(host));
  const writer = await scene.write();
  const dealt: Record<string, number> = {};
  let commitsCut = 0;
  try {
    await scene.flow(50);
    const endMs = performance.now() + options.seconds * 1_000;
    const random = new SeededRandom(seed, 1);
    for (const fault of decks(random)) {
      if (performance.now() > endMs) break;
      if (await deal(fault, { faults, network, random, log })) commitsCut += 1;
      dealt[fault] = (dealt[fault] ?? 0) + 1;
      await faults.heal();
      await scene.flow(random.int(20, 100));
      log(`${writer.diary.size} events written, ${sum(Object.values(dealt))} faults dealt`);
    }
  } finally {
    await faults.heal();
    await writer.stop();
  }
  log("no more faults: waiting until all is delivered, then reading the topics");
  return { verdict: await scene.finish(writer), faults: dealt, commitsCut };
}

/** Every fault once, in an order of the seed's, and again. */
function* decks(random: SeededRandom): Generator<Fault> {
  for (;;) {
    const left = [...FAULTS];
    while (left.length > 0) yield left.splice(random.int(0, left.length - 1), 1)[0]!;
  }
}

interface Table {
  readonly faults: NetworkFaults;
  readonly network: Network;
  readonly random: SeededRandom;
  readonly log: (line: string) => void;
}

/** Returns after the fault's time, before it is healed. True where a commit was cut at its packet. */
async function deal(fault: Fault, { faults, network, random, log }: Table): Promise<boolean> {
  const relays = random.pick([[RELAYS[0]], [RELAYS[1]], RELAYS]);
  const lastsMs = random.between(FAULT_MS.min, FAULT_MS.max);
  const said = `${fault}, ${relays.join(" and ")}, ${(lastsMs / 1_000).toFixed(1)} s`;
  if (fault === "commit at the broker" || fault === "commit in the database") {
    const to = fault === "commit at the broker" ? "broker" : "database";
    const what = random.pick(["request", "answer"] as const);
    const isCut = await faults.cutAtCommit(relays[0]!, to, what, COMMIT_WAIT_MS);
    log(`${fault}, ${relays[0]}, the ${what}${isCut ? "" : ": none came"}`);
    if (isCut) await pauseMs(lastsMs);
    return isCut;
  }
  if (fault === "loss") await faults.lose(LOSS_PERCENT);
  else if (fault === "delay") await faults.delay();
  else for (const relay of relays) for (const [from, to] of cutsOf(fault, relay)) await faults.cut(from, to);
  log(fault === "loss" || fault === "delay" ? `${fault} everywhere, ${(lastsMs / 1_000).toFixed(1)} s` : said);
  await pauseMs(lastsMs);
  if (lastsMs > HEALTH_AFTER_MS) log(`health: ${await healthOf(network, relays[0]!)}`);
  return false;
}

function cutsOf(fault: Fault, relay: Host): readonly (readonly [Host, Host])[] {
  if (fault === "relay to database") return [[relay, "database"]];
  if (fault === "database to relay") return [["database", relay]];
  if (fault === "relay to broker") return [[relay, "broker"]];
  if (fault === "broker to relay") return [["broker", relay]];
  return (["database", "broker"] as const).flatMap((it): [Host, Host][] => [
    [relay, it],
    [it, relay],
  ]);
}

async function healthOf(network: Network, relay: Host): Promise<string> {
  const [program = "", ...args] = [...network.on(relay), "curl", "-s", "-m", "5", `http://127.0.0.1:${PORT}/health`];
  const { stdout } = await run(program, args).catch(() => ({ stdout: "{}" }));
  const { status = "no answer", problems = [] } = JSON.parse(stdout) as {
    status?: string;
    problems?: { name: string }[];
  };
  return `${relay} says ${status}${problems.length > 0 ? ` (${problems.map(({ name }) => name).join(", ")})` : ""}`;
}

/** The relays come over the network; who writes and who asks, over a socket that no fault reaches. */
async function startDatabase(network: Network, started: AsyncDisposableStack): Promise<Place> {
  const scratch = createScratch("sockets", "memory");
  started.defer(() => scratch.remove());
  chmodSync(scratch.path, 0o777); // the server runs under another account
  const rules = join(scratch.path, "hba.conf");
  writeFileSync(rules, "local all all trust\nhost all all 10.77.0.0/16 trust\n");
  const address = network.address("database");
  const settings = [`listen_addresses=${address}`, `unix_socket_directories=${scratch.path}`, `hba_file=${rules}`];
  const server = started.use(
    await startPostgres({
      version: 18,
      prefix: network.on("database"),
      flags: settings.flatMap((setting) => ["-c", setting]),
    }),
  );
  const socket = (name: string) => `postgres://postgres@${encodeURIComponent(scratch.path)}:${server.port}/${name}`;
  return {
    databaseUrl: (name = "postgres", user, password = "") =>
      user === undefined ? socket(name) : `postgres://${user}:${password}@${address}:${server.port}/${name}`,
    async query(sql) {
      const client = new pg.Client({ connectionString: socket("postgres") });
      await client.connect();
      await client.query(sql).finally(() => client.end());
    },
  };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
