/** What a process held at some moment. */
export interface MemorySample {
  readonly atSeconds: number;
  /** 0 to 1: the share of the work that was done. */
  readonly progress: number;
  readonly mb: number;
}

export interface MemoryTenth {
  readonly min: number;
  readonly median: number;
  readonly max: number;
  readonly samples: number;
}

export interface MemoryVerdict {
  readonly isFlat: boolean;
  /** By the straight line that fits best through the second half. */
  readonly growthMb: number;
  readonly growthMbMax: number;
  readonly medianMb: number;
  readonly maxMb: number;
}

/** A heap breathes: less than this says nothing. */
const NOISE_MB = 12;
const GROWTH_SHARE_MAX = 0.1;

/** By the work that was done, so that a pause of the work fills no row of its own. A tenth without a sample is null. */
export function tenthsOf(samples: readonly MemorySample[]): (MemoryTenth | null)[] {
  return Array.from({ length: 10 }, (_, tenth) => {
    const values = samples
      .filter(({ progress }) => Math.min(9, Math.floor(progress * 10)) === tenth)
      .map(({ mb }) => mb)
      .toSorted((a, b) => a - b);
    if (values.length === 0) return null;
    return { min: values[0]!, median: medianOf(values), max: values.at(-1)!, samples: values.length };
  });
}

/** The first half is left out: caches fill, code is compiled. */
export function judgeMemory(samples: readonly MemorySample[]): MemoryVerdict {
  const half = samples.slice(Math.floor(samples.length / 2));
  const medianMb = medianOf(half.map(({ mb }) => mb).toSorted((a, b) => a - b));
  const [first, last] = [half[0], half.at(-1)];
  const seconds = first === undefined || last === undefined ? 0 : last.atSeconds - first.atSeconds;
  const growthMb = slopeOf(half) * seconds;
  const growthMbMax = Math.max(NOISE_MB, medianMb * GROWTH_SHARE_MAX);
  const maxMb = samples.reduce((most, { mb }) => Math.max(most, mb), 0);
  return { isFlat: growthMb <= growthMbMax, growthMb, growthMbMax, medianMb, maxMb };
}

/** Megabytes per second, by least squares. */
function slopeOf(samples: readonly MemorySample[]): number {
  const meanOf = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  if (samples.length < 2) return 0;
  const [meanX, meanY] = [meanOf(samples.map((it) => it.atSeconds)), meanOf(samples.map((it) => it.mb))];
  const spread = samples.reduce((sum, { atSeconds }) => sum + (atSeconds - meanX) ** 2, 0);
  return spread === 0
    ? 0
    : samples.reduce((sum, { atSeconds, mb }) => sum + (atSeconds - meanX) * (mb - meanY), 0) / spread;
}

function medianOf(sorted: readonly number[]): number {
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}
