import { RelayError } from "../../core/errors.ts";
import type { ClaimedEvent, LaneState, PipelineSpec, Run } from "../../ports/queue-store.ts";
import type { BlockedTest } from "./blocked-keys.ts";
import { claimedEvent, type EventHead, headOf, loadedBytes } from "./event-head.ts";
import { scanScript } from "./lua/reading.ts";
import type { RedisLink } from "./redis-link.ts";
import { listOf, numberOf, type Reply, textOf, textsOf } from "./redis-replies.ts";

/** Events that one script scans: a few milliseconds of the server's time. */
const SCAN_EVENTS = 1_000;

/** Where a pass over the pending events reads, and how far. */
export interface ScanScope {
  readonly link: RedisLink;
  readonly pipeline: string;
  readonly laneCount: number;
  readonly lanes: readonly number[];
  /** The server process when the pass began; '' accepts any. */
  readonly server: string;
  /** The last sequence to read. */
  readonly last: string;
}

interface Scanned {
  readonly after: string;
  readonly isEnd: boolean;
  readonly heads: readonly EventHead[];
  /** Keys that were met and left out because they are parked. */
  readonly parked: readonly string[];
}

/** Reads the next page of heads. Throws when another server process answers, since it may assign sequences again. */
export async function scanPending(scope: ScanScope, after: string): Promise<Scanned> {
  const { laneCount, lanes, last, link, pipeline, server } = scope;
  if (lanes.length === 0) return { after: last, isEnd: true, heads: [], parked: [] };
  const args = [pipeline, server, laneCount, after, last, SCAN_EVENTS, ...lanes];
  const reply = listOf((await link.run("reads", "reading events", scanScript, args)) as Reply);
  const [word, next, isEnd, rows, parked] = reply;
  if (textOf(word) === "moved") {
    throw new RelayError(
      "DATABASE_UNREACHABLE",
      `Reading ${pipeline} failed: the Redis server restarted or failed over; the next run begins again.`,
    );
  }
  return {
    after: textOf(next),
    isEnd: numberOf(isEnd) === 1,
    heads: listOf(rows).map(headOf),
    parked: textsOf(parked),
  };
}

interface RunParts {
  readonly scope: ScanScope;
  readonly spec: PipelineSpec;
  readonly lanes: readonly LaneState[];
  readonly isMine: (head: EventHead) => boolean;
  readonly exceptKeys: ReadonlySet<string>;
  readonly exceptTypes: ReadonlySet<string>;
  readonly isBlocked: BlockedTest;
}

/**
 * Reads page by page, in the order of the sequence that every event got when it was written, up to the last sequence
 * assigned when the run began. There is no snapshot: each page shows the state at its time. Two rules make that
 * equivalent:
 *
 * - No event appears behind the position already read, because it gets its sequence in the same step that makes it
 * visible. A server that lost its last writes assigns sequences again: then the run fails.
 * - Once an event is skipped because of its key's state, the rest of the key is skipped too, even if the hold is gone
 * by the next page. Otherwise a later event could overtake the earlier one.
 *
 * An event settled while the run is open is no longer shown. That is less than a snapshot shows, and never wrong.
 */
export class RedisRun implements Run {
  readonly lanes: readonly LaneState[];
  readonly #parts: RunParts;
  readonly #passedOver = new Set<string>();
  #ahead: EventHead[] = [];
  #after = "0";
  #isEnd = false;

  constructor(parts: RunParts) {
    this.lanes = parts.lanes;
    this.#parts = parts;
  }

  async next(rows: number, bytes: number): Promise<readonly ClaimedEvent[]> {
    for (;;) {
      const heads = await this.#take(rows, bytes);
      if (heads.length === 0) return [];
      const events = await this.#load(heads);
      // All of them were settled or deleted meanwhile. An empty page would end the run, so read on.
      if (events.length > 0) return events;
    }
  }

  async end(): Promise<void> {
    this.#ahead = [];
    this.#isEnd = true;
  }

  async #take(rows: number, bytes: number): Promise<readonly EventHead[]> {
    const taken: EventHead[] = [];
    let takenBytes = 0;
    while (taken.length < rows && takenBytes < bytes) {
      if (this.#ahead.length === 0 && !(await this.#readAhead())) break;
      const head = this.#ahead.shift();
      if (head === undefined) continue;
      taken.push(head);
      takenBytes += loadedBytes(head, this.#parts.spec);
    }
    return taken;
  }

  /** Returns false at the end. */
  async #readAhead(): Promise<boolean> {
    if (this.#isEnd) return false;
    const { after, heads, isEnd, parked } = await scanPending(this.#parts.scope, this.#after);
    for (const key of parked) this.#passedOver.add(key);
    this.#after = after;
    this.#isEnd = isEnd;
    this.#ahead = heads.filter((head) => this.#isShown(head));
    return true;
  }

  #isShown(head: EventHead): boolean {
    const { exceptKeys, exceptTypes, isBlocked, isMine } = this.#parts;
    if (!isMine(head)) return false;
    const { key, type } = head;
    if (exceptTypes.has(type)) {
      if (key !== null) this.#passedOver.add(key);
      return false;
    }
    return key === null || !(exceptKeys.has(key) || this.#passedOver.has(key) || isBlocked(key));
  }

  async #load(heads: readonly EventHead[]): Promise<readonly ClaimedEvent[]> {
    const { scope, spec } = this.#parts;
    return (await loadEvents(scope.link, heads, spec)).map(({ event }) => event);
  }
}

/**
 * Loads the payloads; events that are gone are left out. An event over the size limit is returned without its payload.
 */
export async function loadEvents(
  link: RedisLink,
  heads: readonly EventHead[],
  spec: PipelineSpec,
  failuresOf: (head: EventHead) => number = () => 0,
): Promise<readonly { readonly head: EventHead; readonly event: ClaimedEvent }[]> {
  const fitting = heads.filter(({ bytes }) => bytes <= spec.payloadBytesMax);
  const payloads = await link.payloads(fitting.map(({ id }) => id));
  const payloadOf = new Map(fitting.map(({ id }, index) => [id, payloads[index] ?? null]));
  return heads.flatMap((head) => {
    const payload = head.bytes > spec.payloadBytesMax ? Buffer.alloc(0) : payloadOf.get(head.id);
    return payload == null ? [] : [{ head, event: claimedEvent(head, payload, failuresOf(head), spec) }];
  });
}

/** As many heads as fit into this many bytes, at least one. */
export function headsThatFit(heads: readonly EventHead[], bytes: number, spec: PipelineSpec): readonly EventHead[] {
  let used = 0;
  const end = heads.findIndex((head, index) => {
    used += loadedBytes(head, spec);
    return index > 0 && used > bytes;
  });
  return end < 0 ? heads : heads.slice(0, end);
}
