import { setTimeout as pauseMs } from "node:timers/promises";

/** Waits until `condition` gives something truthy and returns it. An error thrown by the condition ends the wait at once. */
export async function until<T>(
  what: string,
  condition: () => T | Promise<T>,
  timeoutMs = 30_000,
): Promise<Exclude<T, false | null | undefined>> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const result = await condition();
    if (result) return result as Exclude<T, false | null | undefined>;
    if (performance.now() > deadline) throw new Error(`waited ${timeoutMs} ms in vain for: ${what}`);
    await pauseMs(10);
  }
}
