import type { EventLog } from "../ports/event-log.ts";
import type { DeadRequest, RequestGroup, RequestQueue } from "../ports/request-queue.ts";
import { referenceOf } from "./request-reference.ts";

interface Replayed {
  readonly eventId: string;
  readonly outcome: "dispatched" | "already dispatched" | "still dead" | "gone";
  readonly reason: string | null;
}

/** Reads each event again and dispatches those that can become a job now; the others stay dead. */
export async function replayDead(
  log: EventLog,
  queue: RequestQueue,
  group: RequestGroup,
  dead: readonly DeadRequest[],
  nowMs: number,
): Promise<readonly Replayed[]> {
  const replayed: Replayed[] = [];
  for (const { eventId, revision, stream } of dead) {
    const [event] = await log.read(stream, BigInt(revision), 1);
    if (event === undefined || event.id !== eventId) {
      replayed.push({ eventId, outcome: "gone", reason: `the stream ${stream} no longer has this event` });
      continue;
    }
    const referenced = referenceOf(event, group, nowMs);
    if ("fault" in referenced) {
      replayed.push({ eventId, outcome: "still dead", reason: referenced.fault });
      continue;
    }
    const [isNew] = await queue.revive(group, [referenced.job]);
    replayed.push({ eventId, outcome: isNew ? "dispatched" : "already dispatched", reason: null });
  }
  return replayed;
}

/**
 * The position after which every event is at least as recent as `timeMs`; "beginning" if the first event already is.
 */
export async function positionAt(
  log: EventLog,
  streamPrefix: string,
  timeMs: number,
  passed: (count: number) => void,
): Promise<string> {
  const over = new AbortController();
  let position = "beginning";
  let count = 0;
  try {
    const subscription = { streamPrefix, from: "beginning", pageMax: 500, signal: over.signal } as const;
    for await (const page of log.subscribe(subscription)) {
      for (const item of page) {
        if (item.kind === "caught up") return position;
        if (item.kind === "event" && item.event.createdMs >= timeMs) return position;
        position = item.position;
        count += 1;
      }
      passed(count);
    }
    return position;
  } finally {
    over.abort();
  }
}
