import { createHash } from "node:crypto";
import type { Message } from "./event.ts";

/** UUIDs, and what else is as long and as mixed: ULIDs, KSUIDs, nano ids. */
const UNIQUE_EVERYWHERE = /^(?=.*[a-z])(?=.*\d)[\w-]{20,128}$/i;
const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;

/**
 * What a destination that drops repetitions knows a message by: the event's id. Where others may bear the same one, a
 * digest follows it, because dropping somebody else's message would be a loss: two tables that count from 1 have equal
 * ids.
 */
export function dedupeId({ event, topic }: Message): string {
  if (UUID.test(event.id) || UNIQUE_EVERYWHERE.test(event.id)) return event.id;
  // Nothing that changes from one attempt to the next may be in it.
  const known = JSON.stringify([topic, event.type, event.key, event.createdAt]);
  const digest = createHash("sha256").update(known).update(event.payload).digest("base64url").slice(0, 22);
  return `${event.id}-${digest}`;
}
