import { ContractMatrix } from "./contract-matrix.ts";
import type { FileResult } from "./file-result.ts";
import type { Group } from "./run-group.ts";

const PROGRESS_EVERY_MS = 10_000;
const SLOWEST_MAX = 10;

/** Prints what happens to the test files, and at the end what became of them. */
export class Report {
  readonly matrix = new ContractMatrix();
  readonly #results: FileResult[] = [];
  /** Files that passed only when they ran a second time. */
  readonly #unsteady: string[] = [];
  readonly #running = new Set<Group>();
  readonly #progress = setInterval(() => this.#printProgress(), PROGRESS_EVERY_MS);

  started(group: Group): void {
    this.#running.add(group);
  }

  ended(group: Group): void {
    this.#running.delete(group);
    for (const result of group.results.files.values()) {
      this.#add(result);
      printFile(result, group.output);
    }
  }

  get results(): readonly FileResult[] {
    return this.#results;
  }

  /** The result of a second run replaces that of the first. */
  #add(result: FileResult): void {
    const first = this.#results.findIndex(({ file }) => file === result.file);
    if (first < 0) this.#results.push(result);
    else {
      this.#results[first] = result;
      if (result.failures.length === 0) this.#unsteady.push(result.file);
    }
  }

  /** True when all is well. `lacking` says what is wrong with the coverage. */
  async finish(checkCoverage: () => Promise<string | null>): Promise<boolean> {
    clearInterval(this.#progress);
    const proved = this.matrix.lines();
    if (proved.length > 0) console.log(["\nthe contract of publishers", ...proved].join("\n  "));
    if (this.#results.length > 1) this.#printSlowest();
    const failures = this.#results.flatMap(({ file, failures }) => failures.map(({ name }) => `  ${file}: ${name}`));
    // Tests that failed have not run all they cover: one thing at a time.
    const lacking = failures.length === 0 ? await checkCoverage() : null;
    if (lacking !== null) failures.push(`  coverage: ${lacking}`);
    if (failures.length > 0) console.log(`\nfailed\n${failures.join("\n")}`);
    if (this.#unsteady.length > 0) {
      console.log(
        `\nunsteady: failed beside other files and passed when run again alone\n  ${this.#unsteady.join("\n  ")}`,
      );
    }
    const passed = this.#sum(({ passed }) => passed);
    const skipped = this.#sum(({ skipped }) => skipped);
    if (skipped > 0) console.log(`\n${skipped} skipped`);
    if (passed + failures.length === 0) console.log("\nno test ran");
    console.log(`\n${passed} passed, ${failures.length} failed`);
    return failures.length === 0 && passed > 0;
  }

  #sum(pick: (result: FileResult) => number): number {
    return this.#results.reduce((total, result) => total + pick(result), 0);
  }

  #printSlowest(): void {
    console.log("\nslowest files");
    const slowest = this.#results.toSorted((a, b) => b.durationMs - a.durationMs).slice(0, SLOWEST_MAX);
    for (const { file, durationMs } of slowest) console.log(`  ${seconds(durationMs)}  ${file}`);
    const tests = this.#results.flatMap(({ file, slow }) => slow.map((test) => ({ file, ...test })));
    if (tests.length > 0) console.log("\nslowest tests");
    for (const { file, title, durationMs } of tests.sort((a, b) => b.durationMs - a.durationMs).slice(0, SLOWEST_MAX)) {
      console.log(`  ${seconds(durationMs)}  ${file}: ${title}`);
    }
  }

  #printProgress(): void {
    for (const { elapsedMs, results, files } of this.#running) {
      if (elapsedMs < PROGRESS_EVERY_MS) continue;
      console.log(`...    ${seconds(elapsedMs)}  ${results.current ?? `${files.at(-1)}: no test open`}`);
    }
  }
}

function printFile(result: FileResult, output: string): void {
  const failed = result.failures.length;
  const verdict = failed > 0 ? "FAILED" : "ok";
  const counts = `${result.passed} passed${failed > 0 ? `, ${failed} failed` : ""}`;
  const skipped = result.skipped > 0 ? `, ${result.skipped} skipped` : "";
  console.log(`${verdict.padEnd(6)} ${seconds(result.durationMs)}  ${result.file}  (${counts}${skipped})`);
  for (const { name, detail } of result.failures) console.log(`\n  FAILED ${name}\n${indent(detail)}\n`);
  if (failed > 0 && output !== "") console.log(`  OUTPUT of ${result.file}\n${indent(output)}\n`);
}

export function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`.padStart(8);
}

function indent(text: string): string {
  return text.trimEnd().replace(/^/gm, "    ");
}
