import type { Message } from "../../core/event.ts";

/** A message with its index in the batch. */
export interface Item {
  readonly index: number;
  readonly message: Message;
  /** Its approximate size on the wire. */
  readonly bytes: number;
}

/** Events for one stream, in one call of the script. */
export interface Call {
  readonly stream: string;
  readonly items: Item[];
  bytes: number;
  isFull: boolean;
}

interface Wave {
  readonly calls: readonly Call[];
  /** Items for a later wave, in order. */
  readonly later: readonly Item[];
  /** Items of keys that have failed. */
  readonly skipped: readonly Item[];
}

/** Redis serves no other client while a script runs, so a call is limited to a few milliseconds. */
const CALL_EVENTS_MAX = 1_000;
/**
 * The smallest `proto-max-bulk-len` that Redis allows. A larger event is sent alone, so that a refusal identifies it.
 */
export const CALL_BYTES_MAX = 1_048_576;
const WAVE_BYTES_MAX = 8 * CALL_BYTES_MAX;

/**
 * Sorts messages into one call per stream; the calls of a wave are sent together. To keep the order per key, a message
 * that does not fit into the same call as the earlier ones of its key waits for a later wave, with all later messages
 * of the key. `failedKeys` holds the index of a key's first failed message: later ones are not sent.
 */
export function planWave(items: readonly Item[], failedKeys: ReadonlyMap<string, number>): Wave {
  const calls = new Map<string, Call>();
  const callOfKey = new Map<string, Call>();
  const waitingKeys = new Set<string>();
  const later: Item[] = [];
  const skipped: Item[] = [];
  let waveBytes = 0;
  for (const item of items) {
    const { key } = item.message.event;
    if (key !== null && item.index > (failedKeys.get(key) ?? item.index)) {
      skipped.push(item);
      continue;
    }
    const mustWait = (key !== null && waitingKeys.has(key)) || waveBytes > WAVE_BYTES_MAX;
    const call = mustWait ? null : callFor(calls, item);
    const before = key === null || call === null ? undefined : callOfKey.get(key);
    if (call === null || (before !== undefined && before !== call)) {
      later.push(item);
      if (key !== null) waitingKeys.add(key);
      continue;
    }
    if (key !== null) callOfKey.set(key, call);
    call.items.push(item);
    call.bytes += item.bytes;
    waveBytes += item.bytes;
  }
  return { calls: [...calls.values()].filter((call) => call.items.length > 0), later, skipped };
}

/**
 * Null when the stream's call is full. It stays full for the rest of the wave, because a smaller message must not
 * overtake a larger one.
 */
function callFor(calls: Map<string, Call>, { bytes, message }: Item): Call | null {
  const stream = message.topic;
  let call = calls.get(stream);
  if (call === undefined) {
    call = { stream, items: [], bytes: 0, isFull: false };
    calls.set(stream, call);
  }
  const { length } = call.items;
  call.isFull ||= length >= CALL_EVENTS_MAX || (length > 0 && call.bytes + bytes > CALL_BYTES_MAX);
  return call.isFull ? null : call;
}
