import { RelayError } from "../../../core/errors.ts";
import type { LogPlace } from "../log/log-kind.ts";
import { parseLsn, printLsn } from "./lsn.ts";

/** A committed transaction: everything with a lower commit record lies before it. */
export interface WalSegment {
  /** Where its commit record begins; without rows of its own, a place between transactions. */
  readonly lsn: bigint;
  /** The line of the server's history in which it was read: a promoted standby writes other things at the same places. */
  readonly timeline: number;
  /** By the server's clock; null for a place between transactions. */
  readonly committedAtMs: number | null;
}

export type WalPlace = LogPlace<WalSegment>;

interface WrittenPlace {
  /** The cluster that it was read from. */
  readonly system: string;
  readonly place: WalPlace;
  readonly ahead: readonly WalPlace[];
}

/** A place between two transactions: nothing of what begins there has been read. */
export function between(lsn: bigint, timeline: number): WalPlace {
  return { segment: { lsn, timeline, committedAtMs: null }, mark: 0 };
}

/** `ahead` by transaction, as runs of rows: `{"0/1A2B": [[3, 5], [9, 9]]}`. */
export function writePlace(system: string, { mark, segment }: WalPlace, ahead: readonly WalPlace[]): string {
  const runs: Record<string, [number, number][]> = {};
  for (const row of ahead) {
    const name = printLsn(row.segment.lsn);
    runs[name] ??= [];
    const last = runs[name].at(-1);
    if (last !== undefined && last[1] + 1 === row.mark) last[1] = row.mark;
    else runs[name].push([row.mark, row.mark]);
  }
  return JSON.stringify({
    system,
    timeline: segment.timeline,
    lsn: printLsn(segment.lsn),
    index: mark,
    ...(ahead.length === 0 ? {} : { ahead: runs }),
  });
}

export function readPlace(written: string): WrittenPlace {
  try {
    const { ahead = {}, index, lsn, system, timeline } = JSON.parse(written) as WrittenFields;
    if (!Number.isSafeInteger(index) || index < 0 || !Number.isSafeInteger(timeline)) throw new SyntaxError("no place");
    const rows = Object.entries(ahead).flatMap(([name, runs]) => {
      const segment = { lsn: parseLsn(name), timeline, committedAtMs: null };
      return runs.flatMap(([from, to]) =>
        Array.from({ length: to - from + 1 }, (_, at) => ({ segment, mark: from + at })),
      );
    });
    const place = { segment: { lsn: parseLsn(lsn), timeline, committedAtMs: null }, mark: index };
    return { system, place, ahead: rows };
  } catch (error) {
    const what = `The checkpoint ${written.slice(0, 200)} is no place in the write-ahead log`;
    throw new RelayError("LOG_LOST", what, { cause: error });
  }
}

interface WrittenFields {
  readonly system: string;
  readonly timeline: number;
  readonly lsn: string;
  readonly index: number;
  readonly ahead?: Readonly<Record<string, readonly (readonly [number, number])[]>>;
}

/** The commits' order, then the order within each. */
export function orderOf({ mark, segment }: WalPlace): bigint {
  return (segment.lsn << 32n) | BigInt(mark);
}

export function isSamePlace(left: WalPlace, right: WalPlace): boolean {
  return (
    left.mark === right.mark &&
    left.segment.lsn === right.segment.lsn &&
    left.segment.timeline === right.segment.timeline
  );
}
