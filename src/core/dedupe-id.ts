import { createHash } from "node:crypto";
import type { Message } from "./event.ts";

/** Ids that are long and mixed enough to be unique everywhere, like UUIDs: ULIDs, KSUIDs, nano ids. */
const UNIQUE_EVERYWHERE = /^(?=.*[a-z])(?=.*\d)[\w-]{20,128}$/i;
const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;

/**
 * The id by which a destination that drops duplicates recognises a message: the event's id. An id that is not unique
 * everywhere is followed by a digest: two tables that count from 1 have equal ids, and a destination that drops the
 * message of the other table would lose it.
 */
export function dedupeId({ event, topic }: Message): string {
  if (UUID.test(event.id) || UNIQUE_EVERYWHERE.test(event.id)) return event.id;
  // Only values that stay the same from one attempt to the next.
  const known = JSON.stringify([topic, event.type, event.key, event.createdAt]);
  const digest = createHash("sha256").update(known).update(event.payload).digest("base64url").slice(0, 22);
  return `${event.id}-${digest}`;
}
