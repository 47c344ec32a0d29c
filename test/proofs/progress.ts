import { countsText, describeViolations } from "../chaos/exactly-once/report.ts";
import type { Verdict } from "../chaos/exactly-once/verdict.ts";

/** Prints lines with the time since the start. */
export function startLog(): (line: string) => void {
  const startedMs = performance.now();
  return (line) => {
    const elapsed = ((performance.now() - startedMs) / 1_000).toFixed(1).padStart(7);
    console.log(`${elapsed} s  ${line}`);
  };
}

/** The last lines of a proof. */
export function describeVerdict(verdict: Verdict): string {
  const { arrivals, events, violations } = verdict;
  const read = `${events.toLocaleString("en")} events committed, ${arrivals.toLocaleString("en")} records read back`;
  const result = violations.length === 0 ? "0 lost, 0 duplicates, 0 out of order, 0 foreign" : countsText(violations);
  return [`${read}: ${result}`, ...(violations.length === 0 ? [] : describeViolations(verdict))].join("\n");
}

/** Ends the process with 0 only when the verdict is clean; the last line says how to repeat it. */
export function conclude(isProved: boolean, again: string): void {
  console.log(`${isProved ? "PROVED" : "FAILED"}; again with: ${again}`);
  process.exitCode = isProved ? 0 : 1;
}

export function refuse(usage: string): never {
  console.error(usage);
  process.exit(2);
}
