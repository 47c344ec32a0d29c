import { readFileSync } from "node:fs";
import { applyMutant, type Mutant } from "./mutant.ts";
import { MUTANTS } from "./mutants.ts";
import { runSeeds, type SeedReport } from "./worker-pool.ts";

interface MutantResult {
  readonly mutant: Mutant;
  /** The seed that detected the bug; null if all passed. */
  readonly caughtBy: SeedReport | null;
  readonly seeds: number;
}

interface MutantOptions {
  readonly from: number;
  /** Number of seeds that must pass before the bug counts as survived. */
  readonly seeds: number;
  readonly jobs: number;
  /** Runs only mutants whose name contains this. */
  readonly only?: string;
  readonly onResult: (result: MutantResult) => void;
}

/** Plants one bug after another and checks whether a seed that passes with the unchanged engine detects it. */
export async function runMutants(options: MutantOptions): Promise<MutantResult[]> {
  const mutants = MUTANTS.filter(({ name }) => name.includes(options.only ?? ""));
  for (const mutant of mutants) {
    applyMutant(mutant, readFileSync(new URL(`../../${mutant.file}`, import.meta.url), "utf8"));
  }
  const results: MutantResult[] = [];
  const waiting = [...mutants];
  const lanes = Array.from({ length: options.jobs }, async () => {
    for (let mutant = waiting.shift(); mutant !== undefined; mutant = waiting.shift()) {
      const result = await runMutant(mutant, options);
      results.push(result);
      options.onResult(result);
    }
  });
  await Promise.all(lanes);
  return results;
}

/** Seeds that detected a bug before go first: some bugs show in one of thousands. */
async function runMutant(mutant: Mutant, options: MutantOptions): Promise<MutantResult> {
  const waiting = [...corpusSeeds(), ...Array.from({ length: options.seeds }, (_, index) => options.from + index)];
  let tried = 0;
  while (waiting.length > 0) {
    let ran = 0;
    const onResult = (): void => {
      ran += 1;
    };
    const seeds = waiting.slice(0, CHUNK);
    const [failure] = await runSeeds({ seeds, jobs: 1, mutant: mutant.name, stopAtFailure: true, onResult });
    waiting.splice(0, ran);
    tried += ran;
    if (failure === undefined) continue;
    const isOurs = (await runSeeds({ seeds: [failure.seed], jobs: 1 })).length === 0;
    if (isOurs) return { mutant, caughtBy: failure, seeds: tried };
  }
  return { mutant, caughtBy: null, seeds: tried };
}

function corpusSeeds(): number[] {
  const text = readFileSync(new URL("./corpus.json", import.meta.url), "utf8");
  const { seeds, plain, later, newest } = JSON.parse(text) as Record<"seeds" | "plain" | "later" | "newest", number[]>;
  return [...plain, ...seeds, ...later, ...newest];
}

const CHUNK = 500;
