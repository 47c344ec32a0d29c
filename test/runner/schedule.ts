/** What a file took when it ran in a process of its own: `npm test -- --record` writes it down. */
export type Cost = {
  readonly wallMs: number;
  /** Of all its processes, servers included. */
  readonly cpuMs: number;
};

export type Costs = Readonly<Record<string, Cost>>;

/** Files for one process. */
export type Job = Cost & { readonly files: readonly string[] };

type Candidate = { readonly path: string; readonly needsServer: boolean };

/** Of a file that was never measured: long enough to start early. */
const UNKNOWN: Cost = { wallMs: 15_000, cpuMs: 10_000 };
/** Files this short share a process: loading the sources takes longer than most of them. */
const SHORT_MS = 8_000;
const GROUP_MS = 20_000;
const GROUP_FILES = 40;

/** Longest first, so that no long one is left over for the end. Without costs each file is on its own. */
export function planJobs(files: readonly Candidate[], costs: Costs, isIsolated: boolean): Job[] {
  const isShort = ({ path }: Candidate): boolean => !isIsolated && (costs[path] ?? UNKNOWN).wallMs <= SHORT_MS;
  const alone = files.filter((file) => !isShort(file)).map(({ path }) => jobOf([path], costs));
  const short = files.filter(isShort);
  const grouped = [true, false].flatMap((needsServer) =>
    fillGroups(
      short.filter((file) => file.needsServer === needsServer).map(({ path }) => path),
      costs,
    ),
  );
  return [...alone, ...grouped].sort((a, b) => b.wallMs - a.wallMs);
}

function fillGroups(paths: readonly string[], costs: Costs): Job[] {
  const groups: string[][] = [];
  let group: string[] = [];
  for (const path of paths) {
    group.push(path);
    if (group.length < GROUP_FILES && jobOf(group, costs).wallMs < GROUP_MS) continue;
    groups.push(group);
    group = [];
  }
  if (group.length > 0) groups.push(group);
  // Tests of a fixture run where it is loaded first, which must be its own file.
  const isFixture = (path: string): boolean => path.endsWith("fixture.test.ts");
  const inOrder = (files: string[]): string[] => files.toSorted((a, b) => Number(isFixture(b)) - Number(isFixture(a)));
  return groups.map((files) => jobOf(inOrder(files), costs));
}

function jobOf(files: readonly string[], costs: Costs): Job {
  const sum = (pick: (cost: Cost) => number): number =>
    files.reduce((total, file) => total + pick(costs[file] ?? UNKNOWN), 0);
  return { files, wallMs: sum(({ wallMs }) => wallMs), cpuMs: sum(({ cpuMs }) => cpuMs) };
}

/** How many cores a job keeps busy while it runs. */
export function loadOf({ cpuMs, wallMs }: Cost): number {
  return Math.min(2, cpuMs / Math.max(1, wallMs));
}

/**
 * The longest job that fits beside those that run; jobs that mostly wait go beside jobs that compute, but never more
 * than `jobsMax` together: tests have deadlines, and all of them start something at once.
 */
export function nextJob(
  waiting: readonly Job[],
  running: readonly Job[],
  { cores, jobsMax }: { readonly cores: number; readonly jobsMax: number },
): Job | undefined {
  if (running.length === 0) return waiting[0];
  if (running.length >= jobsMax) return undefined;
  const busy = running.reduce((total, job) => total + loadOf(job), 0);
  return waiting.find((job) => busy + loadOf(job) <= cores);
}
