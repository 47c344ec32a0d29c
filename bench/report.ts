import { cpus, totalmem } from "node:os";
import type { Figure } from "./figure.ts";

/** A figure means nothing without the machine it was taken on. */
export function machine(): string {
  const [first] = cpus();
  return `${cpus().length} x ${first?.model ?? "unknown CPU"}, ${Math.round(totalmem() / 2 ** 30)} GiB, Node ${process.version}`;
}

export function printFigures(figures: readonly Figure[]): void {
  const nameWidth = Math.max(...figures.map((figure) => figure.name.length));
  process.stdout.write(`\n${machine()}\n\n`);
  for (const { name, value, unit, goal, met } of figures) {
    const verdict = goal === undefined ? "" : `  goal ${goal}  ${met ? "met" : "MISSED"}`;
    process.stdout.write(`${name.padEnd(nameWidth)}  ${format(value).padStart(10)} ${unit.padEnd(14)}${verdict}\n`);
  }
}

function format(value: number): string {
  return value >= 100 ? Math.round(value).toLocaleString("en-US") : value.toFixed(2);
}
