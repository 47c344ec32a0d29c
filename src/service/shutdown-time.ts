/**
 * Stops waiting shortly before the time is up. Unfinished work is safe: another instance recovers it as after a crash.
 */
export async function withinShutdownTime(ms: number, work: () => Promise<void>): Promise<void> {
  const { promise: over, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms * 0.95);
  await Promise.race([work(), over]);
  clearTimeout(timer);
}
