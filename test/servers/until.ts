import { setTimeout as pauseMs } from "node:timers/promises";

/** Growing, because most conditions ask a server, and what is not there within a second is not there soon. */
const PAUSE_MS = { first: 10, last: 50 };

/** Waits until `condition` gives something truthy and returns it. An error thrown by the condition ends the wait at once. */
export async function until<T>(
  what: string,
  condition: () => T | Promise<T>,
  timeoutMs = 30_000,
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
