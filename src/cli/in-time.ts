/** Whatever hangs is left behind: nothing is lost by it, another instance finds it as after a crash. */
export async function inTime(ms: number, work: () => Promise<void>): Promise<void> {
  const { promise: over, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms * 0.95);
  await Promise.race([work(), over]);
  clearTimeout(timer);
}
