import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import type { DrainReport } from "../relay/drain.ts";
import { missingHeapFlags } from "../service/heap-limits.ts";
import { progressLine, showProgress } from "../service/progress.ts";
import { resultOf } from "../service/run-once.ts";

test("A19 the heap limits are added unless they are already set", () => {
  const all = ["--max-semi-space-size=16", "--max-old-space-size=128", "--initial-old-space-size=128"];
  assert.deepEqual(missingHeapFlags([], ""), all);
  assert.deepEqual(missingHeapFlags(["--max_old_space_size=512"], ""), [all[0], all[2]]);
  assert.deepEqual(missingHeapFlags([], "--enable-source-maps --max-old-space-size=64"), [all[0], all[2]]);
  assert.deepEqual(missingHeapFlags(all, ""), []);
});

const DONE: DrainReport = {
  deadLetters: 0,
  retrying: 0,
  unreachable: [],
  blockedTopics: [],
  paused: [],
  elsewhere: 0,
  broken: [],
};

test("G2 the exit code reports what is left: 0 nothing, 5 some events, 1 destination unreachable", () => {
  assert.deepEqual(resultOf(7, DONE), { code: 0, line: "7 events delivered" });
  assert.deepEqual(resultOf(7, { ...DONE, deadLetters: 2 }), { code: 5, line: "7 events delivered; 2 dead letters" });
  assert.equal(resultOf(0, { ...DONE, retrying: 1 }).code, 5);
  assert.match(resultOf(0, { ...DONE, blockedTopics: ["kafka/t"] }).line, /events for kafka\/t wait for the topic/);
  assert.equal(resultOf(0, { ...DONE, blockedTopics: ["kafka/t"] }).code, 5);
  const paused = resultOf(0, { ...DONE, paused: [{ pipeline: "a.outbox->kafka", waiting: 3 }] });
  assert.deepEqual(paused, { code: 5, line: "0 events delivered; 3 wait in a.outbox->kafka, which is paused" });
  assert.equal(resultOf(0, { ...DONE, paused: [{ pipeline: "a.outbox->kafka", waiting: 0 }] }).code, 0);
  assert.equal(resultOf(0, { ...DONE, broken: ["a.outbox->kafka"] }).code, 5);
  assert.equal(resultOf(0, { ...DONE, deadLetters: 2, unreachable: ["kafka"] }).code, 1);
});

test("G6 progress is a bar with counts, drawn on a terminal only", () => {
  assert.equal(progressLine({ delivered: 1_234, failed: 0, total: null, isEstimate: false }), "delivered 1,234");
  const half = progressLine({ delivered: 600, failed: 2, total: 1_200, isEstimate: true });
  assert.equal(half, `${"█".repeat(12)}${"░".repeat(12)} 50 %  delivered 600 of about 1,200, 2 failed attempts`);
  assert.match(progressLine({ delivered: 9, failed: 0, total: 3, isEstimate: false }), /100 % {2}delivered 9 of 9/);
  assert.equal(progressLine({ delivered: 9, failed: 0, total: 3, isEstimate: true }), "delivered 9, more are waiting");
  const written: string[] = [];
  const end = showProgress({ isTTY: false, write: (text) => written.push(text) }, () => assert.fail("asked"));
  end();
  assert.equal(written.length, 0);
  showProgress({ isTTY: true, write: (text) => written.push(text) }, () => ({
    delivered: 0,
    failed: 0,
    total: 0,
    isEstimate: false,
  }))();
  assert.deepEqual(written, ["\r\u001b[2K"], "the line is cleared at the end");
});

test("an old Node gets an error that names the required version", async () => {
  const command = join(import.meta.dirname, "..", "..", "bin", "outbox-relay.js");
  const script = `Object.defineProperty(process.versions, "node", { value: "22.21.9" }); import(${JSON.stringify(command)})`;
  const result = await new Promise<{ code: unknown; stderr: string }>((resolve) => {
    execFile(process.execPath, ["-e", script], (error, _stdout, stderr) => resolve({ code: error?.code, stderr }));
  });
  assert.deepEqual(result, { code: 2, stderr: "outbox-relay: Node 22.21.9 is too old, 22.22 or later is needed.\n" });
});
