import { setTimeout as pauseMs } from "node:timers/promises";
import { SeededRandom } from "../../../src/testing/simulator/seeded-random.ts";
import { type ServiceProcess, startService } from "../../e2e/service-process.ts";
import { freePort } from "../../servers/free-port.ts";
import { until } from "../../servers/until.ts";
import { type Arrival, type CountingReceiver, startCountingReceiver } from "./counting-receiver.ts";
import { openSource, type ProvedEvent, type ProvedSource, type SourceKind } from "./source-kinds.ts";

export interface KillProofOptions {
  readonly source: SourceKind;
  readonly kills: number;
  readonly seed: number;
  readonly relays: number;
  readonly log: (line: string) => void;
}

export interface KillReport {
  readonly written: number;
  readonly arrivals: number;
  readonly lost: readonly string[];
  /** First arrivals of a key behind a later one of it. */
  readonly inversions: readonly string[];
  /** Repetitions that neither a kill nor a late answer explains. */
  readonly doubled: readonly string[];
  /** Those that one does: the relay gave up or died after the event had arrived and before that was written down. */
  readonly repeated: number;
  readonly waiting: number;
  readonly dead: number;
  /** The most rows that were claimed at a moment before a kill. */
  readonly claimedMax: number;
}

const BATCH_SIZE = 20;
const LANES = 4;

const KEYS = 12;
const WRITE_EVERY_MS = 15;
/** New arrivals between two kills: the next one meets relays that work. */
const ARRIVALS_BETWEEN = [10, 150] as const;
const BEFORE_KILL_MS = [0, 1_500] as const;
/** So long after its arrival an event is written down as delivered, also on a busy machine. */
const SETTLED_AFTER_MS = 15_000;
const DRAIN_MS = 180_000;

/** The shipped command, killed with -9 again and again while events are written, and a foreign reader that counts. */
export async function proveKills(options: KillProofOptions): Promise<KillReport> {
  await using stack = new AsyncDisposableStack();
  const source = stack.use(await openSource(options.source));
  const receiver = stack.use(await startCountingReceiver());
  const fleet = stack.use(new KilledFleet(source, receiver));
  const random = new SeededRandom(options.seed);
  const writer = startWriter(source, random.fork());
  for (let count = 0; count < options.relays; count += 1) await fleet.start();
  await until("events arrive", () => receiver.arrivals.length > 0, DRAIN_MS);
  let claimedMax = 0;
  for (let kill = 1; kill <= options.kills; kill += 1) {
    const flowing = receiver.arrivals.length + random.int(...ARRIVALS_BETWEEN);
    await until("it flows again", () => receiver.arrivals.length >= flowing, DRAIN_MS);
    const isBlocked = random.chance(0.5);
    if (isBlocked) receiver.block();
    await pauseMs(random.between(...BEFORE_KILL_MS));
    claimedMax = Math.max(claimedMax, await source.claimed());
    options.log(`kill ${kill}${isBlocked ? " while nothing is answered" : ""}, ${receiver.arrivals.length} arrived`);
    await fleet.killOne(random);
    receiver.unblock();
    await fleet.start();
  }
  const written = await writer.stop();
  const arrived = () => new Set(receiver.arrivals.map(nameOf)).size;
  await until("all has arrived", () => arrived() >= written.length, DRAIN_MS).catch(() => {}); // the report tells
  await fleet.stopAll();
  return { ...report(written, receiver.arrivals, fleet.killedAtMs), ...(await source.left()), claimedMax };
}

class KilledFleet implements AsyncDisposable {
  readonly killedAtMs: number[] = [];
  readonly #variables: Readonly<Record<string, string>>;
  #running: ServiceProcess[] = [];

  constructor(source: ProvedSource, receiver: CountingReceiver) {
    this.#variables = {
      ...{
        INSTANCE_LEASE: "2s",
        POLL_INTERVAL_MS: "100",
        BATCH_SIZE: `${BATCH_SIZE}`,
        LANES: `${LANES}`,
        LOG_LEVEL: "error",
      },
      ...{ OUTBOX_DESTINATION: receiver.url, ...source.variables },
    };
  }

  async start(): Promise<void> {
    const service = startService(["run"], { ...this.#variables, PORT: String(await freePort()) });
    this.#running.push(service);
  }

  async killOne(random: SeededRandom): Promise<void> {
    const [victim] = this.#running.splice(random.int(0, this.#running.length - 1), 1);
    victim!.kill("SIGKILL");
    await victim!.ended;
    this.killedAtMs.push(performance.now());
  }

  /** In good order: nothing may be left claimed. */
  async stopAll(): Promise<void> {
    for (const service of this.#running) {
      const isUp = () =>
        service.get("/livez").then(
          () => true,
          () => false,
        );
      await until("the relay has started", isUp, DRAIN_MS);
      service.kill("SIGTERM");
    }
    for (const service of this.#running) {
      const { code, stderr } = await service.ended;
      if (code !== 0) throw new Error(`a relay ended with ${code}: ${stderr.slice(-2_000)}`);
    }
    this.#running = [];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#running.map((service) => service[Symbol.asyncDispose]()));
  }
}

function startWriter(source: ProvedSource, random: SeededRandom) {
  const written: ProvedEvent[] = [];
  const numbers = new Map<string, number>();
  const stopping = new AbortController();
  const loop = (async () => {
    while (!stopping.signal.aborted) {
      const events = Array.from({ length: random.int(1, 8) }, () => {
        const key = `key-${random.int(1, KEYS)}`;
        const number = (numbers.get(key) ?? 0) + 1;
        numbers.set(key, number);
        return { key, number };
      });
      await source.write(events);
      written.push(...events);
      await pauseMs(WRITE_EVERY_MS);
    }
  })();
  return {
    async stop(): Promise<readonly ProvedEvent[]> {
      stopping.abort();
      await loop;
      return written;
    },
  };
}

const nameOf = ({ key, number }: ProvedEvent): string => `${key} ${number}`;

function report(
  written: readonly ProvedEvent[],
  arrivals: readonly Arrival[],
  killedAtMs: readonly number[],
): Omit<KillReport, "waiting" | "dead" | "claimedMax"> {
  const first = new Map<string, Arrival>();
  const highest = new Map<string, number>();
  const inversions: string[] = [];
  const doubled: string[] = [];
  let repeated = 0;
  for (const arrival of arrivals) {
    const name = nameOf(arrival);
    const before = first.get(name);
    if (before === undefined) {
      first.set(name, arrival);
      const last = highest.get(arrival.key) ?? 0;
      if (arrival.number < last) inversions.push(`${name} after ${last}`);
      highest.set(arrival.key, Math.max(last, arrival.number));
    } else if (isExplained(before, arrival, killedAtMs)) repeated += 1;
    else doubled.push(name);
    // The next repetition is judged by this one.
    if (before !== undefined) first.set(name, arrival);
  }
  const lost = written.map(nameOf).filter((name) => !first.has(name));
  return { written: written.length, arrivals: arrivals.length, lost, inversions, doubled, repeated };
}

function isExplained(before: Arrival, again: Arrival, killedAtMs: readonly number[]): boolean {
  if (!before.isAnswered) return true;
  return killedAtMs.some((atMs) => atMs > before.atMs && atMs < again.atMs && atMs - before.atMs < SETTLED_AFTER_MS);
}

export function describeKills({ lost, inversions, doubled, ...counts }: KillReport): string {
  const examples = (names: readonly string[]) =>
    names.length === 0 ? "0" : `${names.length} (${names.slice(0, 5).join("; ")})`;
  const { written, arrivals, repeated, waiting, dead, claimedMax } = counts;
  return `${written} events written, ${arrivals} arrived: ${examples(lost)} lost, ${examples(inversions)} out of order, ${examples(doubled)} doubled without a cause, ${repeated} repeated after a kill or a late answer; ${waiting} waiting, ${dead} dead, at most ${claimedMax} claimed`;
}

export function isProved({ lost, inversions, doubled, waiting, dead, claimedMax }: KillReport): boolean {
  if (claimedMax > BATCH_SIZE * LANES) return false;
  return lost.length + inversions.length + doubled.length + waiting + dead === 0;
}
