/**
 * The test command. Words pick the files whose path contains one of them; options pick by what the tests need:
 *   --fast       only the files that need no server
 *   --changed    only the files that what changed since the last commit can reach; `--since REF` compares with REF
 *   --coverage   measure it and fail below the limits, as in CI
 *   --sources    start programs from their sources, not compiled
 *   --record     a process for each file, and what it took is written to test/runner/costs.json
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { CompiledPrograms } from "./runner/compiled-programs.ts";
import { readCosts, UsageFolder, writeCosts } from "./runner/cost-book.ts";
import { Coverage } from "./runner/coverage.ts";
import { prepareServers } from "./runner/prepare-servers.ts";
import { Report, seconds } from "./runner/report.ts";
import { Group } from "./runner/run-group.ts";
import { type Cost, type Job, nextJob, planJobs } from "./runner/schedule.ts";
import { filesToRunAgain } from "./runner/second-run.ts";
import { affectedBy, findTestFiles, type TestFile } from "./runner/test-files.ts";

const ROOT = resolve(import.meta.dirname, "..");
/** Whatever starts a program of this project asks it where that is. */
const STARTS_PROGRAMS = "test/servers/program-path.ts";
const isCi = process.env.CI === "true";

const { values: options, positionals: words } = parseArgs({
  allowPositionals: true,
  options: {
    fast: { type: "boolean", default: false },
    changed: { type: "boolean", default: false },
    since: { type: "string" },
    coverage: { type: "boolean", default: isCi },
    sources: { type: "boolean", default: false },
    record: { type: "boolean", default: false },
  },
});

function changedFiles(): string[] {
  const git = (...args: string[]) => execFileSync("git", args, { cwd: ROOT, encoding: "utf8" }).split("\n");
  const untracked = git("ls-files", "--others", "--exclude-standard");
  return [...git("diff", "--name-only", options.since ?? "HEAD"), ...untracked].filter((file) => file !== "");
}

function pickFiles(all: readonly TestFile[]): TestFile[] {
  const reached = options.changed || options.since !== undefined ? affectedBy(changedFiles(), all) : all;
  return reached
    .filter(({ needsServer }) => !options.fast || !needsServer)
    .filter(({ path }) => words.length === 0 || words.some((word) => path.includes(word)));
}

async function runJob(job: Job, report: Report, usage: UsageFolder, measured: Map<string, Cost>): Promise<void> {
  const group = new Group(job.files, {
    skippingFails: isCi,
    onTest: (file, title, verdict) => report.matrix.note(file, title, verdict),
  });
  const usageFile = usage.newFile();
  report.started(group);
  await group.run(usageFile);
  report.ended(group);
  const [file, ...others] = job.files;
  if (file !== undefined && others.length === 0) {
    measured.set(file, { wallMs: group.elapsedMs, cpuMs: usage.cpuMsIn(usageFile) });
  }
}

async function runJobs(jobs: readonly Job[], report: Report): Promise<ReadonlyMap<string, Cost>> {
  using usage = new UsageFolder();
  const measured = new Map<string, Cost>();
  const waiting = [...jobs];
  const running = new Map<Job, Promise<void>>();
  const cores = availableParallelism();
  // Most files wait for servers more than they compute. Planned for the cores alone, these idle for a twentieth of the
  // run. Nothing is known of a machine of CI, and tests have deadlines: it gets a little less at a time.
  const room = isCi ? { cores, jobsMax: 2 * cores } : { cores: 1.15 * cores, jobsMax: 2 * cores + 1 };
  while (waiting.length + running.size > 0) {
    const job = nextJob(waiting, [...running.keys()], room);
    if (job === undefined) {
      await Promise.race(running.values());
      continue;
    }
    waiting.splice(waiting.indexOf(job), 1);
    running.set(
      job,
      runJob(job, report, usage, measured).finally(() => running.delete(job)),
    );
  }
  return measured;
}

/** On a machine of which nothing is known, a missed deadline must not look like a broken promise: it is named instead. */
async function runAgain(report: Report): Promise<void> {
  for (const file of filesToRunAgain(report.results)) {
    console.log(`\nonce more, alone: ${file}`);
    await runJobs(planJobs([{ path: file, needsServer: true }], {}, true), report);
  }
}

const startedMs = performance.now();
const all = findTestFiles(ROOT);
const picked = pickFiles(all);
const isEverything = picked.length === all.length;
// A few files by name may need no server at all.
if (isEverything) await prepareServers();
const coverage = options.coverage && isEverything ? new Coverage(ROOT) : null;
if (coverage !== null) process.env.NODE_V8_COVERAGE = coverage.folder;
// Many processes load the same sources: what the first has compiled the others need not. Coverage stays the same.
const compiled = mkdtempSync(join(tmpdir(), "outbox-relay-compiled-"));
process.env.NODE_COMPILE_CACHE = compiled;
const programs = options.sources ? null : new CompiledPrograms();
if (picked.some(({ loads }) => loads.has(STARTS_PROGRAMS))) await programs?.make(ROOT);
if (options.fast) process.env.TEST_TIER = "fast";
const report = new Report();
const measured = await runJobs(planJobs(picked, options.record ? {} : readCosts(), options.record), report);
if (isCi) await runAgain(report);
if (options.record)
  writeCosts(
    measured,
    all.map(({ path }) => path),
  );
console.log(`\n${picked.length} files in ${seconds(performance.now() - startedMs).trim()}`);
const isGood = await report.finish(async () => (await coverage?.check(console.log)) ?? null);
coverage?.[Symbol.dispose]();
programs?.[Symbol.dispose]();
rmSync(compiled, { recursive: true, force: true });
// Not by exitCode: a process that outlived its test file may still hold a pipe to this one.
process.exit(isGood ? 0 : 1);
