import type { ClaimedEvent, LaneState, PipelineSpec, Run } from "../../ports/queue-store.ts";
import type { EventRow } from "./memory-tables.ts";

/** Shows the rows of its snapshot. `claim` leaves out those that are not free any more where claims are durable. */
export class MemoryRun implements Run {
  readonly lanes: readonly LaneState[];
  #rows: readonly EventRow[];
  #position = 0;
  readonly #claim: (page: readonly EventRow[]) => readonly ClaimedEvent[];

  constructor(
    lanes: readonly LaneState[],
    rows: readonly EventRow[],
    claim: (page: readonly EventRow[]) => readonly ClaimedEvent[],
  ) {
    this.lanes = lanes;
    this.#rows = rows;
    this.#claim = claim;
  }

  async next(rows: number, bytes: number): Promise<readonly ClaimedEvent[]> {
    const claimed: ClaimedEvent[] = [];
    let claimedBytes = 0;
    while (claimed.length < rows && claimedBytes < bytes && this.#position < this.#rows.length) {
      const page = this.#page(rows - claimed.length, bytes - claimedBytes);
      claimed.push(...this.#claim(page));
      claimedBytes = claimed.reduce((sum, { payload }) => sum + payload.length, 0);
    }
    return claimed;
  }

  async end(): Promise<void> {
    this.#rows = [];
  }

  #page(rows: number, bytes: number): readonly EventRow[] {
    const from = this.#position;
    let pageBytes = 0;
    while (this.#position < this.#rows.length && this.#position - from < rows && pageBytes < bytes) {
      pageBytes += this.#rows[this.#position]!.payload.length;
      this.#position += 1;
    }
    return this.#rows.slice(from, this.#position);
  }
}

/** A row that is no proper event is shown without what makes it improper: the engine buries it with the reason. */
export function claimedEvent(row: EventRow, lane: number, failures: number, spec: PipelineSpec): ClaimedEvent {
  const { id, type, key, correlationId, createdAt } = row;
  const fault = faultOf(row, spec);
  const payload = fault === null ? row.payload : Buffer.alloc(0);
  const headers = fault === null ? row.headers : {};
  return { id, type, key, payload, headers, correlationId, createdAt, lane, failures, fault };
}

function faultOf(row: EventRow, spec: PipelineSpec): ClaimedEvent["fault"] {
  if (row.unreadable !== null) return { code: "EVENT_UNREADABLE", reason: row.unreadable };
  if (row.payload.length > spec.payloadBytesMax) {
    const reason = `The payload has ${row.payload.length} bytes; the limit is ${spec.payloadBytesMax}.`;
    return { code: "EVENT_TOO_LARGE", reason };
  }
  const headers = Object.keys(row.headers).length;
  if (headers <= spec.headersMax) return null;
  return { code: "EVENT_TOO_LARGE", reason: `The event has ${headers} headers; the limit is ${spec.headersMax}.` };
}
