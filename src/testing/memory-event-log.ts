import { RelayError } from "../core/errors.ts";
import type { EventLog, LoggedEvent, LogItem, LogStart, NewLoggedEvent, Subscription } from "../ports/event-log.ts";

export interface MemoryEventLogOptions {
  readonly wallMs?: () => number;
}

/** An event log in memory that implements the port, for tests without a server. */
export interface MemoryEventLog extends EventLog {
  /** All events in log order. */
  readonly events: readonly LoggedEvent[];
  /** Until it is called again with null, every call throws LOG_UNREACHABLE with this reason. */
  fail(reason: string | null): void;
}

export function memoryEventLog({ wallMs = () => Date.now() }: MemoryEventLogOptions = {}): MemoryEventLog {
  const all: LoggedEvent[] = [];
  const listeners = new Set<() => void>();
  let failure: string | null = null;
  const require = () => {
    if (failure !== null) throw new RelayError("LOG_UNREACHABLE", failure);
  };
  const inStream = (stream: string) => all.filter((event) => event.stream === stream);
  return {
    events: all,
    fail(reason) {
      failure = reason;
      for (const wake of listeners) wake();
    },
    subscribe: (subscription) => follow(all, listeners, require, subscription),
    async read(stream, from, max) {
      require();
      return inStream(stream)
        .filter(({ revision }) => revision >= from)
        .slice(0, max);
    },
    async readLast(stream) {
      require();
      return inStream(stream).at(-1) ?? null;
    },
    async append(stream, last, events) {
      require();
      const own = inStream(stream);
      const revision = own.at(-1)?.revision ?? null;
      if (isRepetition(own, last, events)) return (last ?? -1n) + BigInt(events.length);
      if (revision !== last) {
        const there = revision === null ? "no event" : `revision ${revision}`;
        throw new RelayError("WRONG_REVISION", `${stream} has ${there}, not ${last === null ? "none" : last}.`);
      }
      const next = (last ?? -1n) + 1n;
      // Round-trip through JSON as with a server: values that JSON cannot represent are lost.
      const copies = events.map((event, index) => logged(stream, next + BigInt(index), wallMs(), event));
      all.push(...copies);
      for (const wake of listeners) wake();
      return next + BigInt(events.length) - 1n;
    },
    async ping() {
      require();
    },
    async close() {},
  };
}

/** Whether the events at the target revisions have the same ids: then the append is a repetition. */
function isRepetition(own: readonly LoggedEvent[], last: bigint | null, events: readonly NewLoggedEvent[]): boolean {
  const from = (last ?? -1n) + 1n;
  return events.length > 0 && events.every(({ id }, index) => own[Number(from) + index]?.id === id);
}

function logged(stream: string, revision: bigint, createdMs: number, event: NewLoggedEvent): LoggedEvent {
  const { data, id, metadata, type } = JSON.parse(JSON.stringify(event)) as NewLoggedEvent;
  return { id, type, stream, revision, createdMs, data, metadata };
}

async function* follow(
  all: readonly LoggedEvent[],
  listeners: Set<() => void>,
  require: () => void,
  { from, pageMax, signal, streamPrefix }: Subscription,
): AsyncGenerator<readonly LogItem[]> {
  let next = startOf(from, all.length);
  let isBehind = true;
  while (!signal.aborted) {
    require();
    const page: LogItem[] = [];
    for (; next < all.length && page.length < pageMax; next += 1) {
      const event = all[next]!;
      if (event.stream.startsWith(streamPrefix)) page.push({ kind: "event", position: String(next), event });
    }
    if (page.length > 0) {
      isBehind = true;
      yield page;
    } else if (isBehind) {
      isBehind = false;
      yield [{ kind: "caught up" }];
    } else await news(listeners, signal);
  }
}

/** The index of the first event to return. Throws LOG_LOST for an unknown position. */
function startOf(from: LogStart, length: number): number {
  if (from === "beginning") return 0;
  if (from === "now") return length;
  const after = Number(from.after);
  if (Number.isInteger(after) && after >= 0 && after < length) return after + 1;
  throw new RelayError("LOG_LOST", `The log has no position ${JSON.stringify(from.after)}.`);
}

/** Resolves after an append, or when the signal aborts. */
async function news(listeners: Set<() => void>, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  listeners.add(resolve);
  signal.addEventListener("abort", () => resolve(), { once: true });
  await promise;
  listeners.delete(resolve);
}
