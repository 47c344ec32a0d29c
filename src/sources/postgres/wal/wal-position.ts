import { RelayError } from "../../../core/errors.ts";
import type { LogPosition } from "../log/log-kind.ts";

/** A position in the write-ahead log as a number, from the form that the server prints: `16/B374D848`. */
export function parseLsn(text: string): bigint {
  const match = /^([0-9A-F]{1,8})\/([0-9A-F]{1,8})$/i.exec(text);
  if (match === null) throw new SyntaxError(`${JSON.stringify(text)} is not a position in the write-ahead log`);
  return (BigInt(`0x${match[1]}`) << 32n) | BigInt(`0x${match[2]}`);
}

/** The position in the form that the server prints. */
export function printLsn(lsn: bigint): string {
  return `${(lsn >> 32n).toString(16).toUpperCase()}/${(lsn & 0xffffffffn).toString(16).toUpperCase()}`;
}

/** A committed transaction: everything with a lower commit record lies before it. */
export interface WalSegment {
  /** The start of its commit record; without rows, a position between transactions. */
  readonly lsn: bigint;
  /** The server's timeline in which it was read: after a promotion the same positions hold other rows. */
  readonly timeline: number;
  /** By the server's clock; null for a position between transactions. */
  readonly committedAtMs: number | null;
}

/** A position in the write-ahead log. */
export type WalPosition = LogPosition<WalSegment>;

interface WrittenPosition {
  /** The cluster that it was read from. */
  readonly system: string;
  readonly place: WalPosition;
  readonly ahead: readonly WalPosition[];
}

/** A position between two transactions: nothing that begins there has been read. */
export function between(lsn: bigint, timeline: number): WalPosition {
  return { segment: { lsn, timeline, committedAtMs: null }, mark: 0 };
}

/** The position as JSON; `ahead` by transaction, as runs of rows: `{"0/1A2B": [[3, 5], [9, 9]]}`. */
export function writePosition(system: string, { mark, segment }: WalPosition, ahead: readonly WalPosition[]): string {
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

/** Throws LOG_LOST when the text is not a position. */
export function readPosition(written: string): WrittenPosition {
  try {
    const { ahead = {}, index, lsn, system, timeline } = JSON.parse(written) as WrittenFields;
    if (!Number.isSafeInteger(index) || index < 0 || !Number.isSafeInteger(timeline))
      throw new SyntaxError("not a position");
    const rows = Object.entries(ahead).flatMap(([name, runs]) => {
      const segment = { lsn: parseLsn(name), timeline, committedAtMs: null };
      return runs.flatMap(([from, to]) =>
        Array.from({ length: to - from + 1 }, (_, at) => ({ segment, mark: from + at })),
      );
    });
    const place = { segment: { lsn: parseLsn(lsn), timeline, committedAtMs: null }, mark: index };
    return { system, place, ahead: rows };
  } catch (error) {
    const what = `The checkpoint ${written.slice(0, 200)} is not a position in the write-ahead log`;
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

/** By the order of commits, then within each transaction. */
export function orderOf({ mark, segment }: WalPosition): bigint {
  return (segment.lsn << 32n) | BigInt(mark);
}

/** Whether both are the same row of the same timeline. */
export function isSamePosition(left: WalPosition, right: WalPosition): boolean {
  return (
    left.mark === right.mark &&
    left.segment.lsn === right.segment.lsn &&
    left.segment.timeline === right.segment.timeline
  );
}
