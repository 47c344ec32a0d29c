import { type ChildProcess, fork } from "node:child_process";
import type { SeedResult } from "./run-seed.ts";
import type { SeedOrder, WorkerMessage } from "./seed-worker.ts";

export type SeedReport = Omit<SeedResult, "lines">;

interface PoolOptions {
  readonly seeds: Iterable<number>;
  readonly jobs: number;
  /** Name of the mutant that the workers run with. */
  readonly mutant?: string;
  readonly stopAtFailure?: boolean;
  readonly onResult?: (result: SeedReport) => void;
}

const SEEDS_PER_ORDER = 10;
/** A seed takes milliseconds; one that takes this long is in an endless loop. */
const STUCK_MS = 60_000;

/** Runs seeds in several processes. Resolves with the results that violated an invariant, by seed. */
export async function runSeeds(options: PoolOptions): Promise<SeedReport[]> {
  const seeds = options.seeds[Symbol.iterator]();
  const failures: SeedReport[] = [];
  const state = { over: false };
  const onResult = (result: SeedReport): void => {
    if (result.violations.length > 0) {
      failures.push(result);
      if (options.stopAtFailure) state.over = true;
    }
    options.onResult?.(result);
  };
  const nextOrder = (): SeedOrder => {
    const order = state.over ? [] : takeSome(seeds, SEEDS_PER_ORDER);
    return { seeds: order, stopAtFailure: options.stopAtFailure ?? false };
  };
  const workers = Array.from({ length: options.jobs }, () => runWorker(options.mutant, nextOrder, onResult));
  await Promise.all(workers);
  return failures.sort((left, right) => left.seed - right.seed);
}

async function runWorker(
  mutant: string | undefined,
  nextOrder: () => SeedOrder,
  onResult: (result: SeedReport) => void,
): Promise<void> {
  for (;;) {
    const stuckSeed = await runProcess(mutant, nextOrder, onResult);
    if (stuckSeed === null) return;
    const violations = [`hot loop: the engine did not yield for ${STUCK_MS / 1_000} s`];
    onResult({ seed: stuckSeed, violations, hash: "", fired: {}, events: 0, virtualMs: 0, steps: 0 });
  }
}

/** Null if all seeds are done, else the seed in which the process got stuck. */
function runProcess(
  mutant: string | undefined,
  nextOrder: () => SeedOrder,
  onResult: (result: SeedReport) => void,
): Promise<number | null> {
  return new Promise((resolve, reject) => {
    const child = startProcess(mutant);
    let waiting: number[] = [];
    let stuck: number | null = null;
    const watchdog = setTimeout(() => {
      stuck = waiting[0] ?? null;
      child.kill("SIGKILL");
    }, STUCK_MS);
    child.on("message", (message: WorkerMessage) => {
      watchdog.refresh();
      if (message.kind === "seed") {
        waiting.shift();
        onResult(message.result);
        return;
      }
      const order = nextOrder();
      waiting = [...order.seeds];
      if (order.seeds.length === 0) child.disconnect();
      else child.send(order);
    });
    child.on("exit", (code) => {
      clearTimeout(watchdog);
      if (code === 0 || stuck !== null) resolve(stuck);
      else reject(new Error(`A worker ended with code ${code} at seed ${waiting[0] ?? "none"}; see its output above.`));
    });
  });
}

function startProcess(mutant: string | undefined): ChildProcess {
  const hooks = new URL("./mutant-hooks.ts", import.meta.url);
  const execArgv = mutant === undefined ? [] : ["--import", hooks.href];
  const env = { ...process.env, ...(mutant === undefined ? {} : { SIMULATOR_MUTANT: mutant }) };
  return fork(new URL("./seed-worker.ts", import.meta.url), { execArgv, env, stdio: ["ignore", 2, 2, "ipc"] });
}

function takeSome(seeds: Iterator<number>, count: number): number[] {
  const taken: number[] = [];
  while (taken.length < count) {
    const next = seeds.next();
    if (next.done) break;
    taken.push(next.value);
  }
  return taken;
}
