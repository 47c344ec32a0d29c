import type { Written } from "./event-writer.ts";

/** A record that a reader saw, in the order of the offsets of its partition. */
export interface Arrival {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  readonly id: string | undefined;
  readonly key: string | null;
  readonly crc: number;
}

export interface Violation {
  readonly what: "lost" | "duplicate" | "out of order" | "scattered" | "foreign" | "corrupt" | "vanished" | "unmarked";
  readonly id: string;
  readonly detail: string;
  /** Where it was seen, if it was. */
  readonly places: readonly Place[];
}

export type Place = Pick<Arrival, "topic" | "partition" | "offset">;

export interface Verdict {
  /** In the database at the end. Each of them must have arrived. */
  readonly events: number;
  readonly arrivals: number;
  /** Delivered before a failover to a standby that never heard of them. */
  readonly forgotten: number;
  /** Committed before a failover, not delivered, and gone with the old primary. */
  readonly lostByDatabase: number;
  readonly violations: readonly Violation[];
}

export interface Evidence {
  readonly diary: ReadonlyMap<string, Written>;
  /** The rows of all outbox tables after the drain: whether they are marked as delivered, by id. */
  readonly rows: ReadonlyMap<string, boolean>;
  readonly arrivals: readonly Arrival[];
  /** How many database servers were written to, one after the other. */
  readonly eras: number;
}

/**
 * What a failover to an asynchronous standby does to the count: the database itself forgot the last commits, so what
 * is not in the table any more cannot be lost by the relay. But what was delivered of it was delivered: it may be seen
 * once, never twice, and never out of order. The events of a key are in order when their pair of era and sequence
 * rises, because the new primary counts on from an older state. Nothing of the last era may be missing in the table.
 */
export function judge({ diary, rows, arrivals, eras }: Evidence): Verdict {
  const byId = Map.groupBy(arrivals, ({ id }) => id ?? "");
  const isFormerEra = ({ era }: Written) => era < eras - 1;
  const lostRows = [...diary].filter(([id, { end }]) => end === "committed" && !rows.has(id));
  const forgotten = [...byId.keys()].filter(
    (id) => !rows.has(id) && (diary.get(id)?.end ?? "rolled-back") !== "rolled-back",
  );
  return {
    events: rows.size,
    arrivals: arrivals.length,
    forgotten: forgotten.length,
    lostByDatabase: lostRows.filter(([id, event]) => isFormerEra(event) && !byId.has(id)).length,
    violations: [
      ...lostRows.filter(([, event]) => !isFormerEra(event)).map(([id, event]) => vanished(id, event)),
      ...[...rows.keys()].filter((id) => !byId.has(id)).map((id) => lost(id, diary.get(id))),
      ...[...rows].filter(([id, isMarked]) => !isMarked && byId.has(id)).map(([id]) => unmarked(id, byId)),
      ...[...byId].filter(([, seen]) => seen.length > 1).map(([id, seen]) => duplicate(id, diary.get(id), seen)),
      ...foreigners(byId, diary, rows, isFormerEra),
      ...arrivals.flatMap((arrival) => corrupt(arrival, diary)),
      ...outOfOrder(arrivals, diary),
    ],
  };
}

function vanished(id: string, event: Written): Violation {
  return { what: "vanished", id, detail: `${describe(event)} was committed and its row is gone`, places: [] };
}

function lost(id: string, event: Written | undefined): Violation {
  return { what: "lost", id, detail: `${describe(event)} never arrived`, places: [] };
}

function unmarked(id: string, byId: ReadonlyMap<string, readonly Arrival[]>): Violation {
  return { what: "unmarked", id, detail: "arrived, and its row does not say so", places: byId.get(id) ?? [] };
}

function duplicate(id: string, event: Written | undefined, seen: readonly Arrival[]): Violation {
  return { what: "duplicate", id, detail: `${describe(event)} arrived ${seen.length} times`, places: seen };
}

function foreigners(
  byId: ReadonlyMap<string, readonly Arrival[]>,
  diary: Evidence["diary"],
  rows: Evidence["rows"],
  isFormerEra: (event: Written) => boolean,
): Violation[] {
  const why = (id: string): string | undefined => {
    const event = diary.get(id);
    if (event === undefined) return "nobody wrote it";
    if (event.end === "rolled-back") return "its transaction was rolled back";
    return rows.has(id) || isFormerEra(event) ? undefined : "it is not in the table, and no failover explains that";
  };
  return [...byId].flatMap(([id, places]): Violation[] => {
    const detail = why(id);
    return detail === undefined ? [] : [{ what: "foreign", id, detail, places }];
  });
}

function corrupt(arrival: Arrival, diary: Evidence["diary"]): Violation[] {
  const event = diary.get(arrival.id ?? "");
  if (event === undefined) return [];
  const { key, crc, type } = event;
  if (arrival.key === key && arrival.crc === crc && arrival.topic === type) return [];
  return [
    { what: "corrupt", id: arrival.id ?? "", detail: `key, bytes or topic of ${describe(event)}`, places: [arrival] },
  ];
}

/** The events of a key stand in one partition of each topic, and rise there; first arrivals only. */
function outOfOrder(arrivals: readonly Arrival[], diary: Evidence["diary"]): Violation[] {
  const last = new Map<string, { readonly event: Written; readonly arrival: Arrival }>();
  const seen = new Set<string>();
  const violations: Violation[] = [];
  for (const arrival of arrivals) {
    const id = arrival.id ?? "";
    const event = diary.get(id);
    if (event === undefined || event.key === null || seen.has(id)) continue;
    seen.add(id);
    const place = `${arrival.topic} ${event.key}`;
    const before = last.get(place);
    last.set(place, { event, arrival });
    if (before === undefined) continue;
    const places = [before.arrival, arrival];
    const detail = `${describe(event)} after ${describe(before.event)}`;
    if (before.arrival.partition !== arrival.partition) violations.push({ what: "scattered", id, detail, places });
    else if (!follows(event, before.event)) violations.push({ what: "out of order", id, detail, places });
  }
  return violations;
}

function follows(event: Written, before: Written): boolean {
  return event.era === before.era ? event.sequence > before.sequence : event.era > before.era;
}

function describe(event: Written | undefined): string {
  if (event === undefined) return "an event of unknown origin";
  return `${event.key ?? "keyless"} ${event.sequence}${event.era > 0 ? ` (era ${event.era})` : ""}`;
}
