/**
 * Fits a container of 256 MB, whatever the machine has: by default V8 takes a share of the machine's memory. The
 * initial old space is not a limit: V8 lets it grow to that size without full collections, which would free little.
 */
const LIMITS = { "--max-semi-space-size": 16, "--max-old-space-size": 128, "--initial-old-space-size": 128 } as const;

/** The flags of LIMITS that neither the command line nor NODE_OPTIONS sets. */
export function missingHeapFlags(execArgv: readonly string[], nodeOptions: string): string[] {
  const given = [...execArgv, ...nodeOptions.split(/\s+/)].map((flag) => flag.split("=")[0]?.replaceAll("_", "-"));
  return Object.entries(LIMITS)
    .filter(([flag]) => !given.includes(flag))
    .map(([flag, megabytes]) => `${flag}=${megabytes}`);
}

/**
 * Re-executes the program in the same process with V8's limits, which can only be set at the start. The process id and
 * the streams stay the same, so a supervisor does not notice. Returns when all flags are already set.
 */
export function limitHeap(): void {
  const flags = missingHeapFlags(process.execArgv, process.env.NODE_OPTIONS ?? "");
  if (flags.length === 0 || process.execve === undefined) return;
  const [node, ...args] = [process.execPath, ...process.execArgv, ...flags, ...process.argv.slice(1)];
  process.execve(node!, [node!, ...args], process.env);
}
