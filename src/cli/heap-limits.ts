/**
 * For a container with 256 MB, whatever the machine has: V8 would otherwise take a share of the machine's memory. The
 * last is no limit: below it the old space grows without a full collection, of which there were many in vain.
 */
const LIMITS = { "--max-semi-space-size": 16, "--max-old-space-size": 128, "--initial-old-space-size": 128 } as const;

/** The flags that nobody has given yet. */
export function missingHeapFlags(execArgv: readonly string[], nodeOptions: string): string[] {
  const given = [...execArgv, ...nodeOptions.split(/\s+/)].map((flag) => flag.split("=")[0]?.replaceAll("_", "-"));
  return Object.entries(LIMITS)
    .filter(([flag]) => !given.includes(flag))
    .map(([flag, megabytes]) => `${flag}=${megabytes}`);
}

/**
 * Starts the program anew in the same process, with V8's limits: they can only be given at the start. Same process id,
 * same streams, so nobody outside notices. Returns when there is nothing to add.
 */
export function limitHeap(): void {
  const flags = missingHeapFlags(process.execArgv, process.env.NODE_OPTIONS ?? "");
  if (flags.length === 0 || process.execve === undefined) return;
  const [node, ...args] = [process.execPath, ...process.execArgv, ...flags, ...process.argv.slice(1)];
  process.execve(node!, [node!, ...args], process.env);
}
