import type { Hold } from "../../core/hold.ts";
import type { LaneState } from "../../ports/queue-store.ts";

/** A part of a script's reply: nested lists of Buffers, numbers and nulls. */
export type Reply = Buffer | number | null | readonly Reply[];

/** The list, or an empty one: Redis shortens a Lua list at its first nil. */
export function listOf(reply: Reply | undefined): readonly Reply[] {
  return Array.isArray(reply) ? reply : [];
}

/** The text; empty for null. */
export function textOf(reply: Reply | undefined): string {
  return textOrNull(reply) ?? "";
}

/** The text; null for null and for lists. */
export function textOrNull(reply: Reply | undefined): string | null {
  return Buffer.isBuffer(reply) ? reply.toString() : typeof reply === "number" ? String(reply) : null;
}

/** The number; 0 for null. */
export function numberOf(reply: Reply | undefined): number {
  return Number(textOf(reply));
}

/** A list of texts. */
export function textsOf(reply: Reply | undefined): string[] {
  return listOf(reply).map(textOf);
}

/** Parses a lane's owner and progress. */
export function laneStateOf(reply: Reply): LaneState {
  const [lane, owner, epoch, settled] = listOf(reply);
  return {
    lane: numberOf(lane),
    owner: textOrNull(owner),
    epoch: BigInt(textOf(epoch)),
    settledBatch: BigInt(textOf(settled)),
  };
}

/** Parses what `list_holds` in the scripts returns. */
export function holdOf(lane: number, reply: Reply): Hold {
  const [id, key, state, parks, attempts, crashes, due] = listOf(reply);
  const word = textOf(state);
  return {
    id: textOf(id),
    key: textOrNull(key),
    lane,
    state: word === "dead" || word === "suspect" ? word : "retrying",
    parks: numberOf(parks) === 1,
    attempts: numberOf(attempts),
    crashes: numberOf(crashes),
    dueInMs: due === null || due === undefined ? null : numberOf(due),
  };
}
