import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Cost, Costs } from "./schedule.ts";

const FILE = new URL("./costs.json", import.meta.url);

/** What each file took last time it was measured, as [wall, CPU] in milliseconds. */
export function readCosts(): Costs {
  const entries = Object.entries(JSON.parse(readFileSync(FILE, "utf8")) as Record<string, [number, number]>);
  return Object.fromEntries(entries.map(([file, [wallMs, cpuMs]]) => [file, { wallMs, cpuMs }]));
}

/** Where the processes of one run write down what they used. */
export class UsageFolder implements Disposable {
  readonly #folder = mkdtempSync(join(tmpdir(), "outbox-relay-usage-"));
  #count = 0;

  newFile(): string {
    this.#count += 1;
    return join(this.#folder, String(this.#count));
  }

  cpuMsIn(file: string): number {
    try {
      return Number(readFileSync(file, "utf8"));
    } catch {
      return 0; // killed before it could write
    }
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** Replaces what was known of these files. */
export function writeCosts(measured: ReadonlyMap<string, Cost>, known: readonly string[]): void {
  const all: Record<string, Cost> = { ...readCosts(), ...Object.fromEntries(measured) };
  const lines = Object.entries(all)
    .filter(([file]) => known.includes(file))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([file, { wallMs, cpuMs }]) => `  ${JSON.stringify(file)}: [${Math.round(wallMs)}, ${Math.round(cpuMs)}]`);
  writeFileSync(FILE, `{\n${lines.join(",\n")}\n}\n`);
}
