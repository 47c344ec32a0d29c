import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { availableParallelism, loadavg } from "node:os";
import { promisify } from "node:util";

const run = promisify(execFile);
/** What starting an empty Node takes on two idle cores of the kind for which the limits were chosen. */
const QUIET_START_MS = 60;
const SAMPLES = 5;

/**
 * Fails if something took longer than its limit, which holds for an idle machine. One that is slower or busy gets as much
 * more time as it needs for starting a process, or as many times more as processes have shared a core in the last minute.
 */
export async function assertWithin(tookMs: number, limitMs: number, what: string): Promise<void> {
  if (tookMs <= limitMs) return;
  const factor = Math.max(await slowdown(), sharing());
  const took = `${what} took ${Math.round(tookMs)} ms`;
  assert.ok(tookMs <= limitMs * factor, `${took}; ${limitMs} ms are allowed, times ${factor.toFixed(1)} here and now`);
}

/** How many times longer than an idle machine this one takes at present; at least 1. */
async function slowdown(): Promise<number> {
  let slowestMs = 0;
  for (let sample = 0; sample < SAMPLES; sample += 1) {
    const startedMs = performance.now();
    await run(process.execPath, ["--eval", "0"], { env: {} });
    slowestMs = Math.max(slowestMs, performance.now() - startedMs);
  }
  return Math.max(1, slowestMs / QUIET_START_MS);
}

/** The load may be over by the time that the slowness is noticed: the average of the last minute still shows it. */
function sharing(): number {
  const [lastMinute = 0] = loadavg();
  return lastMinute / availableParallelism();
}
