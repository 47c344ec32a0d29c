// The test command: runs every *.test.ts in a process of its own. Arguments pick the files whose path contains one.
import { globSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { run } from "node:test";
import { inspect } from "node:util";
import { ContractMatrix } from "./contract-matrix.ts";
import { Coverage } from "./coverage.ts";
import { chromiumProgram } from "./servers/chromium.ts";
import { dynamoDbClassPath } from "./servers/dynamodb.ts";
import { elasticMqClassPath } from "./servers/elasticmq.ts";
import { hadolintProgram } from "./servers/hadolint.ts";
import { classArchive } from "./servers/kafka-templates.ts";
import { installNats } from "./servers/nats.ts";
import { postgresBinaries } from "./servers/postgres-binaries.ts";
import { prometheusProgram } from "./servers/promtool.ts";
import { installRabbit } from "./servers/rabbitmq.ts";
import { installRedis } from "./servers/redis.ts";
import { schemathesisCommand } from "./servers/schemathesis.ts";

const concurrentFilesMax = 2;
const testTimeoutMs = 120_000;
// A process that stays after its last test has left something open. Exiting by force would hide that.
const leakTimeoutMs = 30_000;
// Behind the timeout of each test, for what no timer inside the process can end, such as an endless loop.
const silenceTimeoutMs = 600_000;
const progressEveryMs = 10_000;
const outputCharsMax = 20_000;
const skippingFails = process.env.CI === "true";

const matrix = new ContractMatrix();

type Failure = { readonly name: string; readonly detail: string };

type FileResult = {
  readonly file: string;
  readonly startedMs: number;
  durationMs: number;
  passed: number;
  skipped: number;
  readonly failures: Failure[];
  output: string;
  /** Every test and suite by its id; it leaves `open` when it has ended. */
  readonly names: Map<number, string>;
  readonly open: Set<number>;
  lastSignMs: number;
};

type TestEvent = {
  readonly name: string;
  readonly nesting: number;
  readonly testId: number;
  readonly parentId?: number | undefined;
  readonly skip?: string | boolean;
  readonly todo?: string | boolean;
  readonly details?: { readonly type?: string; readonly error?: Error };
};

function newResult(file: string): FileResult {
  const now = performance.now();
  const counters = { durationMs: 0, passed: 0, skipped: 0, output: "" };
  return { file, startedMs: now, lastSignMs: now, failures: [], names: new Map(), open: new Set(), ...counters };
}

async function runFile(result: FileResult): Promise<void> {
  const path = resolve(result.file);
  const abort = new AbortController();
  const stream = run({ files: [path], isolation: "process", timeout: testTimeoutMs, signal: abort.signal });
  const isFileItself = (event: TestEvent): boolean => event.name === path && event.nesting === 0;
  const watch = setInterval(() => {
    const reason = stuckReason(result);
    if (!reason) return;
    clearInterval(watch);
    result.failures.push({ name: "the process does not exit", detail: reason });
    killChild(path);
    abort.abort();
  }, 1_000);

  const on = (type: string, listener: (event: TestEvent) => void): void => {
    stream.on(type, (event: TestEvent) => {
      result.lastSignMs = performance.now();
      listener(event);
    });
  };
  on("test:enqueue", (event) => {
    if (isFileItself(event)) return;
    const parent = event.parentId === undefined ? undefined : result.names.get(event.parentId);
    result.names.set(event.testId, parent === undefined ? event.name : `${parent} > ${event.name}`);
    result.open.add(event.testId);
  });
  on("test:complete", (event) => !isFileItself(event) && result.open.delete(event.testId));
  on("test:pass", (event) => (isFileItself(event) ? addEmptyFile(result) : addPass(result, event)));
  on("test:fail", (event) => (isFileItself(event) ? addCrash(result, event) : addFailure(result, event)));
  for (const type of ["test:stdout", "test:stderr"]) {
    stream.on(type, ({ message }: { message: string }) => {
      result.output = (result.output + message).slice(-outputCharsMax);
    });
  }
  // An error after the last test is only told here. The runner's own totals name no file.
  stream.on("test:diagnostic", ({ message, file }: { message: string; file?: string }) => {
    if (file !== undefined) result.output += `${message}\n`;
  });
  // Without a reader the stream would never end.
  for await (const _ of stream) result.durationMs = performance.now() - result.startedMs;
  clearInterval(watch);
}

function addPass(result: FileResult, event: TestEvent): void {
  if (event.skip !== undefined || event.todo !== undefined) addSkipped(result, event);
  else if (event.details?.type !== "suite") {
    result.passed += 1;
    matrix.note(result.file, event.name, "passed");
  }
}

function addSkipped(result: FileResult, event: TestEvent): void {
  result.skipped += 1;
  if (skippingFails) result.failures.push({ name: nameOf(result, event), detail: "skipped, and CI skips nothing" });
}

function addFailure(result: FileResult, event: TestEvent): void {
  if (event.todo !== undefined) {
    addSkipped(result, event);
    return;
  }
  const error = event.details?.error as (Error & { failureType?: string }) | undefined;
  // The parent of a failed test fails for that reason alone and is no failure of its own.
  if (error?.failureType === "subtestsFailed") return;
  result.failures.push({ name: nameOf(result, event), detail: inspect(error?.cause ?? error) });
  matrix.note(result.file, event.name, "failed");
}

/** The runner reports the file itself only if it ended badly without a failed test, or held no test. */
function addCrash(result: FileResult, event: TestEvent): void {
  const error = event.details?.error as (Error & { exitCode?: number; signal?: string }) | undefined;
  if (result.failures.length > 0) return;
  const end = error?.signal ? `by ${error.signal}` : `with exit code ${error?.exitCode}`;
  result.failures.push({ name: "the process crashed", detail: `the test process ended ${end}` });
}

function addEmptyFile(result: FileResult): void {
  result.failures.push({ name: "no tests", detail: "the file holds no test" });
}

function nameOf(result: FileResult, event: TestEvent): string {
  return result.names.get(event.testId) ?? event.name;
}

function stuckReason(result: FileResult): string | undefined {
  const silentMs = performance.now() - result.lastSignMs;
  if (result.names.size > 0 && result.open.size === 0 && silentMs > leakTimeoutMs) {
    return `${result.file}: all tests have ended, but a server, socket, timer or child process is left open`;
  }
  if (silentMs > silenceTimeoutMs) return `${result.file}: no sign of life for ${silenceTimeoutMs / 1000} s`;
  return undefined;
}

/** By hand, because the abort signal sends only a SIGTERM, which a test may have a handler for. */
function killChild(path: string): void {
  const children = readFileSync(`/proc/${process.pid}/task/${process.pid}/children`, "utf8").trim().split(" ");
  for (const pid of children.filter((child) => child !== "")) {
    try {
      if (readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(path)) process.kill(Number(pid), "SIGKILL");
    } catch {
      // it has ended in the meantime
    }
  }
}

function report(result: FileResult): void {
  const failed = result.failures.length;
  const verdict = failed > 0 ? "FAILED" : "ok";
  const counts = `${result.passed} passed${failed > 0 ? `, ${failed} failed` : ""}`;
  const skipped = result.skipped > 0 ? `, ${result.skipped} skipped` : "";
  console.log(`${verdict.padEnd(6)} ${seconds(result.durationMs)}  ${result.file}  (${counts}${skipped})`);
  for (const { name, detail } of result.failures) console.log(`\n  FAILED ${name}\n${indent(detail)}\n`);
  if (failed > 0 && result.output.trim() !== "") console.log(`  OUTPUT of ${result.file}\n${indent(result.output)}\n`);
}

function reportProgress(running: Iterable<FileResult>): void {
  for (const result of running) {
    const elapsedMs = performance.now() - result.startedMs;
    if (elapsedMs < progressEveryMs) continue;
    const current = [...result.open].at(-1);
    const doing = current === undefined ? "no test open" : result.names.get(current);
    console.log(`...    ${seconds(elapsedMs)}  ${result.file}: ${doing}`);
  }
}

async function reportSummary(results: readonly FileResult[], coverage: Coverage | null): Promise<boolean> {
  const proved = matrix.lines();
  if (proved.length > 0) console.log(["\nthe contract of publishers", ...proved].join("\n  "));
  const slowest = results.toSorted((a, b) => b.durationMs - a.durationMs).slice(0, 10);
  if (results.length > 1) console.log("\nslowest files");
  if (results.length > 1) for (const { file, durationMs } of slowest) console.log(`  ${seconds(durationMs)}  ${file}`);
  const failures = results.flatMap(({ file, failures }) => failures.map(({ name }) => `  ${file}: ${name}`));
  // Tests that failed have not run all they cover: one thing at a time.
  const lacking = failures.length === 0 ? await coverage?.check(console.log) : null;
  if (lacking) failures.push(`  coverage: ${lacking}`);
  if (failures.length > 0) console.log(`\nfailed\n${failures.join("\n")}`);
  const sum = (pick: (result: FileResult) => number): number => results.reduce((total, r) => total + pick(r), 0);
  const passed = sum((result) => result.passed);
  const skipped = sum((result) => result.skipped);
  if (skipped > 0) console.log(`\n${skipped} skipped`);
  if (passed + failures.length === 0) console.log("\nno test ran");
  console.log(`\n${passed} passed, ${failures.length} failed`);
  return failures.length === 0 && passed > 0;
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`.padStart(8);
}

function indent(text: string): string {
  return text.trimEnd().replace(/^/gm, "    ");
}

const wanted = process.argv.slice(2);
const files = globSync("{src,test,bench,console}/**/*.test.ts", { exclude: ["**/node_modules/**"] })
  .filter((file) => wanted.length === 0 || wanted.some((part) => file.includes(part)))
  .sort();
const results: FileResult[] = [];
const running = new Set<FileResult>();
const progress = setInterval(() => reportProgress(running), progressEveryMs);

async function work(): Promise<void> {
  for (let file = files.shift(); file !== undefined; file = files.shift()) {
    const result = newResult(file);
    running.add(result);
    await runFile(result);
    running.delete(result);
    results.push(result);
    report(result);
  }
}

/** What the servers need is fetched and made before, once per machine: it may take longer than a test may. */
async function prepareServers(): Promise<void> {
  const startedMs = performance.now();
  for (const version of [15, 18] as const) await postgresBinaries(version);
  await classArchive();
  await installRedis();
  await installNats();
  await elasticMqClassPath();
  await dynamoDbClassPath();
  await installRabbit();
  await prometheusProgram("promtool");
  await hadolintProgram();
  await chromiumProgram();
  await schemathesisCommand();
  const tookMs = performance.now() - startedMs;
  if (tookMs > progressEveryMs) console.log(`ready  ${seconds(tookMs)}  the servers, kept for the next time`);
}

// A few files by name may need no server at all, and cover little.
if (wanted.length === 0) await prepareServers();
const coverage = wanted.length === 0 ? new Coverage(process.cwd()) : null;
if (coverage !== null) process.env.NODE_V8_COVERAGE = coverage.folder;
// Hundreds of processes load the same sources: what the first has compiled the others need not. Coverage stays the same.
const compiled = mkdtempSync(join(tmpdir(), "outbox-relay-compiled-"));
process.env.NODE_COMPILE_CACHE = compiled;
await Promise.all(Array.from({ length: concurrentFilesMax }, work));
clearInterval(progress);
const isGood = await reportSummary(results, coverage);
coverage?.[Symbol.dispose]();
rmSync(compiled, { recursive: true, force: true });
// Not by exitCode: a process that outlived its test file may still hold a pipe to this one.
process.exit(isGood ? 0 : 1);
