import type { Lane } from "./lane.ts";

/** How many more events each of these lanes takes. A durable claim without room in its lane would have to be undone. */
export function roomsOf(lanes: Iterable<Lane>, leftOut: ReadonlySet<number>): ReadonlyMap<number, number> {
  const taking = [...lanes].filter((lane) => lane.isOpen && !leftOut.has(lane.grant.lane));
  return new Map(taking.map((lane) => [lane.grant.lane, lane.room]));
}

/**
 * True when at least half of the lane's room is free: otherwise many small runs would read the same rows repeatedly.
 */
export function hasRoomForRun(lane: Lane): boolean {
  return lane.isReadyForRun && lane.room > 0 && lane.room >= lane.inFlight;
}

/** The memory that the events of these lanes take, and the part of it for held events that are retried. */
export function bytesOf(lanes: readonly Lane[]): { readonly bytes: number; readonly headBytes: number } {
  const own = { bytes: 0, headBytes: 0 };
  for (const { claims } of lanes) {
    own.bytes += claims.bytes;
    own.headBytes += claims.headBytes;
  }
  return own;
}
