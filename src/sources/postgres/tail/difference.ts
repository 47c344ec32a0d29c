import { RelayError } from "../../../core/errors.ts";

/**
 * What one snapshot of the server sees and an older one did not: the rows whose transactions ended in between. It is
 * fixed as soon as both snapshots are, however late a transaction commits. `to` is null while nobody has looked.
 */
export interface Difference {
  readonly from: string;
  readonly to: string | null;
  /** The server's life in which this was read or found written down; never written itself. See `life.ts`. */
  readonly life?: string;
}

/** Before every transaction; also of rows that are older than the column. */
export const BEGINNING = "1:1:";

interface Snapshot {
  /** Transactions from here on were not over. */
  readonly end: bigint;
  /** Before it, but not over either. */
  readonly running: readonly bigint[];
}

/** `xmin:xmax:xip,xip`, as the server prints it. */
export function parseSnapshot(text: string): Snapshot {
  const match = /^(\d+):(\d+):((?:\d+(?:,\d+)*)?)$/.exec(text);
  if (!match) throw new RelayError("LOG_LOST", `${JSON.stringify(text.slice(0, 100))} is no snapshot.`);
  const running = match[3] === "" ? [] : match[3]!.split(",").map(BigInt);
  return { end: BigInt(match[2]!), running };
}

/** The transactions that the older snapshot saw running, as far as they are over in the newer one. */
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
