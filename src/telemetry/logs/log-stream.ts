import type { DestinationStream, LevelWithSilent } from "pino";

interface Branch {
  readonly level: LevelWithSilent;
  write(line: string, level: string): void;
}

const NUMBERS: Readonly<Record<LevelWithSilent, number>> = {
  trace: 10,
  debug: 20,
  info: 30,
  warn: 40,
  error: 50,
  fatal: 60,
  silent: Number.POSITIVE_INFINITY,
};
const NAMES = new Map(Object.entries(NUMBERS).map(([name, number]) => [number, name]));

/** Writes each line to the branches whose level it reaches. */
export function branchedStream(branches: readonly Branch[]): DestinationStream {
  return {
    // This symbol makes the logger store each line's level in `lastLevel` before it writes.
    [Symbol.for("pino.metadata")]: true,
    lastLevel: 0,
    write(line: string): void {
      const level: number = this.lastLevel;
      for (const branch of branches) {
        if (level >= NUMBERS[branch.level]) branch.write(line, NAMES.get(level) ?? "info");
      }
    },
  } as DestinationStream & { lastLevel: number };
}

/** The lowest level, which lets through what any of them needs. */
export function lowestLevel(levels: readonly LevelWithSilent[]): LevelWithSilent {
  return levels.reduce((lowest, level) => (NUMBERS[level] < NUMBERS[lowest] ? level : lowest), "silent");
}
