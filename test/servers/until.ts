import assert from "node:assert/strict";
import { setTimeout as pauseMs } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";

/** Growing, because most conditions ask a server, and what is not there within a second is not there soon. */
const PAUSE_MS = { first: 10, last: 50 };
/** Only a wait in vain lasts this long, so that no machine is too slow for a condition that comes true. */
const PATIENCE_MS = 120_000;

/** Waits until `condition` gives something truthy and returns it. An error thrown by the condition ends the wait at once. */
export async function until<T>(
  what: string,
  condition: () => T | Promise<T>,
  timeoutMs = PATIENCE_MS,
): Promise<Exclude<T, false | null | undefined>> {
  const startedMs = performance.now();
  const deadline = startedMs + timeoutMs;
  for (;;) {
    const result = await condition();
    if (result) return result as Exclude<T, false | null | undefined>;
    if (performance.now() > deadline) throw new Error(`waited ${timeoutMs} ms in vain for: ${what}`);
    const waitedMs = performance.now() - startedMs;
    await pauseMs(Math.min(PAUSE_MS.last, PAUSE_MS.first + waitedMs / 25));
  }
}

/** Waits until `read` returns what is expected: for figures that follow an event a moment later. In vain, the error shows the difference. */
export async function untilEqual<T>(what: string, read: () => T | Promise<T>, expected: T): Promise<void> {
  let last: T | undefined;
  await until(what, async () => {
    last = await read();
    return isDeepStrictEqual(last, expected);
  }).catch((error: Error) => {
    assert.deepEqual(last, expected, error.message);
    throw error;
  });
}
