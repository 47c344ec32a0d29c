import { RelayError } from "../../../core/errors.ts";

/**
 * The rows that one snapshot of the server sees and an older one did not: those whose transactions ended in between.
 * The set is fixed as soon as both snapshots are, however late a transaction commits. `to` is null until the newer
 * snapshot is taken.
 */
export interface Difference {
  readonly from: string;
  readonly to: string | null;
  /** The server's incarnation in which this was read or loaded; never written itself. See `server-recovered.ts`. */
  readonly incarnation?: string;
}

/** Before every transaction; also covers rows that are older than the column. */
export const BEGINNING = "1:1:";

interface Snapshot {
  /** Transactions from here on had not ended. */
  readonly end: bigint;
  /** Before `end`, but not ended either. */
  readonly running: readonly bigint[];
}

/** Parses `xmin:xmax:xip,xip`, as the server prints it. */
export function parseSnapshot(text: string): Snapshot {
  const match = /^(\d+):(\d+):((?:\d+(?:,\d+)*)?)$/.exec(text);
  if (!match) throw new RelayError("LOG_LOST", `${JSON.stringify(text.slice(0, 100))} is not a snapshot.`);
  const running = match[3] === "" ? [] : match[3]!.split(",").map(BigInt);
  return { end: BigInt(match[2]!), running };
}

/** The transactions that ran in the older snapshot and have ended in the newer one. */
export function endedSince({ from, to }: Difference): readonly bigint[] {
  const { running } = parseSnapshot(from);
  if (to === null || running.length === 0) return running;
  const newer = parseSnapshot(to);
  const still = new Set(newer.running);
  return running.filter((xid) => xid < newer.end && !still.has(xid));
}

/** Equal for equal differences, whatever object holds them. */
export function keyOf({ from, to }: Difference): string {
  return `${from}/${to ?? ""}`;
}
