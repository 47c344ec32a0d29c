/**
 * Runs several test files in one process, each as a suite of its own, so that its hooks stay its own. Most files take
 * less time than a process needs to load what they import. The first argument names the file for the CPU time used.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { suite } from "node:test";

const [usageFile = "", ...files] = process.argv.slice(2);

// Node has read it at the start: this process is measured, the programs that its tests start are not.
delete process.env.NODE_V8_COVERAGE;

// One after the other: a fixture that several files import has tests of its own, which belong to whichever loads it first.
for (const file of files) {
  const loaded = Promise.withResolvers<void>();
  suite(file, async () => {
    await import(resolve(file)).finally(loaded.resolve);
  });
  await loaded.promise;
}

process.on("exit", () => writeFileSync(usageFile, String(cpuMs())));

/** Of this process and of all it has started and seen end, servers included. */
function cpuMs(): number {
  const text = readFileSync("/proc/self/stat", "utf8");
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
  return ticks * 10; // Linux counts in hundredths of a second
}
