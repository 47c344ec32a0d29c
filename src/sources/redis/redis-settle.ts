import type { DeadLetterNote, Failure, Settlement, SettleResult } from "../../ports/queue-store.ts";
import type { FailedAttempt } from "../../ports/technical-events.ts";
import type { Argument } from "./redis-link.ts";
import { listOf, type Reply, textOf, textOrNull, textsOf } from "./redis-replies.ts";

/** Encodes an optional text: '' for none, else '=' and the text. So an empty text differs from none. */
export function optional(text: string | null): string {
  return text === null ? "" : `=${text}`;
}

/** The arguments in the order in which the script reads them. */
export function settleArguments(pipeline: string, settlement: Settlement, deliveredIdsMs: number): readonly Argument[] {
  const { batch, delivered, failed, grant, ledger, previousBatch, releasedHolds, suspects } = settlement;
  return [
    ...[pipeline, grant.lane, grant.owner, String(grant.epoch), String(previousBatch), String(batch), ledger],
    ...[deliveredIdsMs, delivered.length, failed.length, releasedHolds.length, suspects.length],
    ...delivered,
    ...failed.flatMap(failureArguments),
    ...releasedHolds,
    ...suspects.flatMap(({ id, key }) => [id, optional(key)]),
  ];
}

function failureArguments({ attempts, id, key, next, reason }: Failure): readonly Argument[] {
  const isDead = next.kind === "dead";
  const value = isDead ? (next.parks ? "1" : "0") : Math.max(0, Math.round(next.delayMs));
  return [id, optional(key), reason, attempts, next.kind, value];
}

/** Parses the script's reply. */
export function settleResult(missing: Reply | undefined, dead: Reply | undefined): SettleResult {
  return { missing: textsOf(missing), dead: listOf(dead).map(noteOf) };
}

function noteOf(reply: Reply): DeadLetterNote {
  const [id, type, correlationId, attempts] = listOf(reply);
  const errors = attemptsOf(textOf(attempts));
  return {
    id: textOf(id),
    type: textOf(type),
    correlationId: textOrNull(correlationId),
    firstFailedAt: errors[0]?.at ?? "",
    lastFailedAt: errors.at(-1)?.at ?? "",
    errors,
  };
}

/** The errors of all attempts, the oldest first. */
export function attemptsOf(json: string): readonly FailedAttempt[] {
  const errors = JSON.parse(json) as readonly { at: number; attempt: number; reason: string }[];
  return errors.map(({ at, attempt, reason }) => ({ at: new Date(at).toISOString(), attempt, reason }));
}
