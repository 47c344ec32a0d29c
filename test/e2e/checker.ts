import { crc32 } from "node:zlib";
import type { Arrival } from "../servers/sink.ts";
import { SENT_BY } from "./sink-publisher.ts";

/** What a writer noted about an event in the transaction that wrote it. */
export interface LedgerRow {
  readonly id: string;
  readonly key: string | null;
  /** Counts the events of a key from 1; the order in which its transactions held the lock on it. */
  readonly sequence: number;
  readonly crc: number;
}

/** An event's row in its outbox after the drain. */
export interface OutboxRow {
  readonly id: string;
  readonly delivered: boolean;
}

export interface Verdict {
  readonly events: number;
  readonly arrivals: number;
  /** In the ledger, never at the sink. */
  readonly lost: readonly string[];
  /** At the sink, not in the ledger: rolled back, or forgotten by a failover. */
  readonly unknown: readonly string[];
  /** First deliveries of a key that follow a later one, with what arrived around them and by whom it was sent. */
  readonly inversions: readonly string[];
  /** The payload at the sink is not the one that was written, or the key is another. */
  readonly corrupt: readonly string[];
  /** Arrivals beyond the first of an event. */
  readonly duplicates: number;
  /** Delivered, and the row does not say so; or the row is missing. */
  readonly unmarked: readonly string[];
  /** Marked as delivered, and never at the sink. */
  readonly markedInVain: readonly string[];
}

/** Compares what was written with what arrived, in the raw order of arrival. */
export function judge(
  ledger: readonly LedgerRow[],
  arrivals: readonly Arrival[],
  outbox: readonly OutboxRow[],
): Verdict {
  const written = new Map(ledger.map((row) => [row.id, row]));
  const firsts = new Map<string, Arrival>();
  for (const arrival of arrivals) if (!firsts.has(arrival.id)) firsts.set(arrival.id, arrival);
  const marked = new Map(outbox.map((row) => [row.id, row.delivered]));
  const known = [...firsts.values()].filter(({ id }) => written.has(id));
  return {
    events: ledger.length,
    arrivals: arrivals.length,
    lost: ledger.filter(({ id }) => !firsts.has(id)).map(({ id }) => id),
    unknown: [...firsts.keys()].filter((id) => !written.has(id)),
    inversions: inversionsOf(known, written).map(({ id, text }) => `${text} (${around(id, arrivals, written)})`),
    corrupt: arrivals.filter((arrival) => isCorrupt(arrival, written.get(arrival.id))).map(({ id }) => id),
    duplicates: arrivals.length - firsts.size,
    unmarked: ledger.filter(({ id }) => firsts.has(id) && marked.get(id) !== true).map(({ id }) => id),
    markedInVain: outbox.filter(({ id, delivered }) => delivered && !firsts.has(id)).map(({ id }) => id),
  };
}

function inversionsOf(firsts: readonly Arrival[], written: ReadonlyMap<string, LedgerRow>) {
  const highest = new Map<string, number>();
  return firsts.flatMap(({ id }) => {
    const { key, sequence } = written.get(id)!;
    if (key === null) return [];
    const before = highest.get(key) ?? 0;
    highest.set(key, Math.max(before, sequence));
    return sequence > before ? [] : [{ id, text: `${key}: ${sequence} after ${before}` }];
  });
}

/** The arrivals of the event's key near it: `99 by relay-2 at 1712, 100 by relay-1 at 1730`. */
function around(id: string, arrivals: readonly Arrival[], written: ReadonlyMap<string, LedgerRow>): string {
  const key = written.get(id)?.key;
  const ofKey = arrivals.filter((arrival) => written.get(arrival.id)?.key === key);
  const at = ofKey.findIndex((arrival) => arrival.id === id);
  return ofKey
    .slice(Math.max(0, at - 6), at + 4)
    .map((near) => `${written.get(near.id)?.sequence} by ${near.headers[SENT_BY] ?? "?"} at ${near.atMs % 1_000_000}`)
    .join(", ");
}

function isCorrupt({ key, payload }: Arrival, row: LedgerRow | undefined): boolean {
  return row !== undefined && (crc32(payload) !== row.crc || key !== row.key);
}

/** For a test's message: the counts, and a few examples of what is wrong. */
export function describeVerdict(verdict: Verdict): string {
  return Object.entries(verdict)
    .map(([name, value]) => `${name} ${Array.isArray(value) ? examples(value) : value}`)
    .join(", ");
}

function examples(items: readonly string[]): string {
  return items.length === 0 ? "0" : `${items.length} (${items.slice(0, 5).join("; ")})`;
}
