import { eventBytes, TEXT_BYTES_MAX, tooLarge } from "../../core/event.ts";
import type { ClaimedEvent, LaneState, PipelineSpec, Run } from "../../ports/queue-store.ts";
import type { MemoryEventRow } from "./memory-tables.ts";

/** Pages through the rows of its snapshot. With durable claims, `claim` drops rows that are no longer free. */
export class MemoryRun implements Run {
  readonly lanes: readonly LaneState[];
  #rows: readonly MemoryEventRow[];
  #position = 0;
  /**
   * Rows skipped because their lane had no room. They come first on the next page, which keeps the order within a key.
   */
  #passedOver: MemoryEventRow[] = [];
  readonly #laneOf: (row: MemoryEventRow) => number;
  readonly #claim: (page: readonly MemoryEventRow[]) => readonly ClaimedEvent[];

  constructor(
    lanes: readonly LaneState[],
    rows: readonly MemoryEventRow[],
    laneOf: (row: MemoryEventRow) => number,
    claim: (page: readonly MemoryEventRow[]) => readonly ClaimedEvent[],
  ) {
    this.lanes = lanes;
    this.#rows = rows;
    this.#laneOf = laneOf;
    this.#claim = claim;
  }

  async next(rows: number, bytes: number, rooms?: ReadonlyMap<number, number>): Promise<readonly ClaimedEvent[]> {
    const claimed: ClaimedEvent[] = [];
    const room = new Room(rows, bytes, rooms);
    for (;;) {
      const page = this.#page(room.copy());
      // `claim` may drop rows. An empty page would end the run, so it reads on until something is claimed or nothing is
      // left.
      if (page.length === 0) return claimed;
      for (const event of this.#claim(page)) {
        claimed.push(event);
        room.take(event.lane, eventBytes(event));
      }
    }
  }

  async end(): Promise<void> {
    this.#rows = [];
    this.#passedOver = [];
  }

  #page(room: Room): readonly MemoryEventRow[] {
    const page: MemoryEventRow[] = [];
    const [again, passedOver] = [this.#passedOver, [] as MemoryEventRow[]];
    let index = 0;
    while (!room.isFull) {
      const row = index < again.length ? again[index++] : this.#rows[this.#position++];
      if (row === undefined) break;
      const lane = this.#laneOf(row);
      if (room.of(lane) > 0) {
        page.push(row);
        room.take(lane, eventBytes(row));
      } else passedOver.push(row);
    }
    this.#passedOver = [...passedOver, ...again.slice(index)];
    return page;
  }
}

/** Rows and bytes that a page can still take. */
class Room {
  #rows: number;
  #bytes: number;
  readonly #ofLanes: Map<number, number> | null;

  constructor(rows: number, bytes: number, ofLanes: ReadonlyMap<number, number> | null = null) {
    this.#rows = rows;
    this.#bytes = bytes;
    this.#ofLanes = ofLanes === null ? null : new Map(ofLanes);
  }

  copy(): Room {
    return new Room(this.#rows, this.#bytes, this.#ofLanes);
  }

  get isFull(): boolean {
    return this.#rows <= 0 || this.#bytes <= 0;
  }

  of(lane: number): number {
    return this.#ofLanes === null ? this.#rows : (this.#ofLanes.get(lane) ?? 0);
  }

  take(lane: number, bytes: number): void {
    this.#rows -= 1;
    this.#bytes -= bytes;
    this.#ofLanes?.set(lane, this.of(lane) - 1);
  }
}

/** A row that is not a valid event is returned without its invalid part; the engine turns it into a dead letter. */
export function claimedEvent(row: MemoryEventRow, lane: number, failures: number, spec: PipelineSpec): ClaimedEvent {
  const { id, type, correlationId, createdAt } = row;
  const fault = faultOf(row, spec);
  const key = isTooWide(row.key) ? null : row.key;
  const payload = fault === null ? row.payload : Buffer.alloc(0);
  const headers = fault === null ? row.headers : {};
  return { id, type, key, payload, headers, correlationId, createdAt, lane, failures, fault };
}

function isTooWide(text: string | null): boolean {
  return text !== null && Buffer.byteLength(text) > TEXT_BYTES_MAX;
}

function faultOf(row: MemoryEventRow, spec: PipelineSpec): ClaimedEvent["fault"] {
  if (row.unreadable !== null) return { code: "EVENT_UNREADABLE", reason: row.unreadable };
  if (row.payload.length > spec.payloadBytesMax) {
    const reason = `The payload has ${row.payload.length} bytes; the limit is ${spec.payloadBytesMax}.`;
    return { code: "EVENT_TOO_LARGE", reason };
  }
  if (isTooWide(row.key)) {
    return { code: "EVENT_TOO_LARGE", reason: tooLarge("key", Buffer.byteLength(row.key!), TEXT_BYTES_MAX) };
  }
  const headers = Object.keys(row.headers).length;
  if (headers <= spec.headersMax) return null;
  return { code: "EVENT_TOO_LARGE", reason: `The event has ${headers} headers; the limit is ${spec.headersMax}.` };
}
