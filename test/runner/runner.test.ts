import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { COMPILED_FOLDER, programPath } from "../servers/program-path.ts";
import { Group } from "./run-group.ts";
import { type Costs, nextJob, planJobs } from "./schedule.ts";
import { filesToRunAgain } from "./second-run.ts";
import { affectedBy, findTestFiles } from "./test-files.ts";

const folder = mkdtempSync(join(tmpdir(), "outbox-relay-runner-"));
after(() => rmSync(folder, { recursive: true }));

// By this variable the test runner knows that it is called from a test, and refuses.
delete process.env.NODE_TEST_CONTEXT;

const HEAD = 'import { after, test } from "node:test";\n';

async function runFiles(texts: Readonly<Record<string, string>>, skippingFails = false) {
  const files = Object.entries(texts).map(([name, text]) => {
    const file = join(folder, `${name}.test.mjs`);
    writeFileSync(file, HEAD + text);
    return file;
  });
  const titles: string[] = [];
  const group = new Group(files, { skippingFails, onTest: (_, title, verdict) => titles.push(`${title} ${verdict}`) });
  const usageFile = join(folder, "usage");
  await group.run(usageFile);
  const results = [...group.results.files.values()].map(({ passed, skipped, failures }) => ({
    passed,
    skipped,
    failures: failures.map(({ name }) => name),
  }));
  return { results, titles, group, usageFile };
}

test("A22 files of one process have results and hooks of their own", async () => {
  const { results, titles, group, usageFile } = await runFiles({
    good: 'after(() => console.log("hook of good")); test("adds", async (t) => { await t.test("one", () => {}); });',
    bad: 'test("subtracts", () => { throw new Error("17 is not 4"); }); test("waits", { skip: "why" }, () => {});',
  });
  assert.deepEqual(results, [
    { passed: 2, skipped: 0, failures: [] },
    { passed: 0, skipped: 1, failures: ["subtracts"] },
  ]);
  assert.deepEqual(titles, ["one passed", "adds passed", "subtracts failed"]);
  assert.match(group.output, /hook of good/);
  assert.ok(Number(readFileSync(usageFile, "utf8")) > 0);
});

test("A22 a file that cannot be loaded, holds no test, or skips in CI fails, and so does what comes behind a crash", async () => {
  const broken = await runFiles({ broken: 'import "./nowhere.mjs";', empty: "", after: 'test("runs", () => {});' });
  assert.deepEqual(
    broken.results.map(({ passed, failures }) => [passed, ...failures]),
    [[0, "the file cannot be loaded"], [0, "no tests"], [1]],
  );
  const skipped = await runFiles({ skipped: 'test("later", { todo: true }, () => {});' }, true);
  assert.deepEqual(skipped.results[0]?.failures, ["later"]);
  const crashed = await runFiles({
    crash: 'test("exits", () => process.kill(process.pid, "SIGKILL"));',
    never: 'test("x", () => {});',
  });
  assert.deepEqual(
    crashed.results.map(({ failures }) => failures),
    [["the process crashed"], ["did not run to its end"]],
  );
});

test("A22 long files start first, short ones share a process, and waiting ones run beside computing ones", () => {
  const costs: Costs = {
    "long.test.ts": { wallMs: 60_000, cpuMs: 90_000 },
    "waits.test.ts": { wallMs: 20_000, cpuMs: 2_000 },
    "short.test.ts": { wallMs: 100, cpuMs: 100 },
    "shorter.test.ts": { wallMs: 50, cpuMs: 50 },
    "server.test.ts": { wallMs: 200, cpuMs: 100 },
  };
  const files = [...Object.keys(costs), "new.test.ts"].map((path) => ({
    path,
    needsServer: path === "server.test.ts",
  }));
  const jobs = planJobs(files, costs, false);
  assert.deepEqual(
    jobs.map((job) => job.files),
    [["long.test.ts"], ["waits.test.ts"], ["new.test.ts"], ["server.test.ts"], ["short.test.ts", "shorter.test.ts"]],
  );
  const [long, waits, fresh] = jobs;
  const room = { cores: 2, jobsMax: 3 };
  assert.equal(nextJob(jobs, [], room), long);
  assert.equal(nextJob([fresh!, waits!], [long!], room), waits, "there is no core left for one that computes");
  assert.equal(nextJob([fresh!], [long!, waits!], room), undefined);
  assert.equal(nextJob([waits!], [fresh!], { cores: 2, jobsMax: 1 }), undefined);
  assert.equal(planJobs(files, costs, true).length, files.length);
});

test("A22 a program is started in its compiled form where the runner has made one, else from its source", () => {
  const root = join(import.meta.dirname, "../..");
  const [command, other] = [join(root, "src/cli/outbox-relay.ts"), join(root, "test/servers/sink-process.ts")];
  const before = process.env[COMPILED_FOLDER];
  try {
    delete process.env[COMPILED_FOLDER];
    assert.equal(programPath(command), command);
    mkdirSync(join(folder, "src/cli"), { recursive: true });
    writeFileSync(join(folder, "src/cli/outbox-relay.js"), "");
    process.env[COMPILED_FOLDER] = folder;
    assert.equal(programPath(command), join(folder, "src/cli/outbox-relay.js"));
    assert.equal(programPath(other), other);
  } finally {
    delete process.env[COMPILED_FOLDER];
    if (before !== undefined) process.env[COMPILED_FOLDER] = before;
  }
});

test("A22 a change runs the tests that load the file, and those that read everything", () => {
  const all = findTestFiles(join(import.meta.dirname, "../.."));
  const needsServer = (path: string) => all.find((file) => file.path === path)?.needsServer;
  assert.equal(needsServer("src/core/circuit.test.ts"), false);
  assert.equal(needsServer("src/sources/postgres/postgres-contract.test.ts"), true);
  const affected = affectedBy(["src/publishers/http/http-errors.ts"], all).map(({ path }) => path);
  for (const path of ["src/publishers/http/http-errors.test.ts", "test/tidy.test.ts", "test/docs.test.ts"]) {
    assert.ok(affected.includes(path), path);
  }
  assert.ok(!affected.includes("src/core/circuit.test.ts"));
  assert.deepEqual(affectedBy([], all), []);
});

test("A22 CI runs a few failed files a second time, and never one that proves a guarantee", () => {
  const result = (file: string, failed: boolean) => {
    const failures = failed ? [{ name: "a test", detail: "" }] : [];
    return { file, durationMs: 1, passed: 1, skipped: 0, hasEnded: true, slow: [], failures };
  };
  const [browser, service, page] = ["test/e2e/a.test.ts", "test/e2e/b.test.ts", "test/documents/c.test.ts"];
  const good = result("src/core/d.test.ts", false);
  assert.deepEqual(filesToRunAgain([good, result(browser, true), result(page, true)]), [browser, page]);
  assert.deepEqual(filesToRunAgain([result(browser, true), result("test/chaos/e.test.ts", true)]), []);
  const contract = "src/publishers/kafka/kafka-contract.test.ts";
  assert.deepEqual(filesToRunAgain([result(contract, true)]), []);
  assert.deepEqual(filesToRunAgain([browser, service, page].map((file) => result(file, true))), []);
  assert.deepEqual(filesToRunAgain([good]), []);
});
