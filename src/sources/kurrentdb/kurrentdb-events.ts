import type { JSONEventData, RecordedEvent, ResolvedEvent } from "@kurrent/kurrentdb-client";
import type { LoggedEvent, LogItem, NewLoggedEvent } from "../../ports/event-log.ts";

type Recorded = Omit<RecordedEvent, "data" | "metadata"> & { readonly data: unknown; readonly metadata: unknown };

/** Converts the client's event. */
export function loggedEvent(event: Recorded): LoggedEvent {
  const { id, type, streamId: stream, created } = event;
  // Until 1.3 the client may give a number.
  const revision = BigInt(event.revision);
  return { id, type, stream, revision, createdMs: created.getTime(), data: dataOf(event), metadata: metadataOf(event) };
}

/** The client returns text that is not JSON as a string, so a bare string counts as no JSON. */
function dataOf({ isJson, data }: Recorded): unknown {
  return isJson && typeof data !== "string" ? data : undefined;
}

/** The client returns metadata as bytes when it is not JSON. */
function metadataOf({ metadata }: Recorded): LoggedEvent["metadata"] {
  if (metadata === undefined) return {};
  const isObject = typeof metadata === "object" && metadata !== null;
  if (!isObject || Array.isArray(metadata) || metadata instanceof Uint8Array) return null;
  return metadata as Record<string, unknown>;
}

/** Converts an event for the client's append. */
export function newEvent({ id, type, data, metadata }: NewLoggedEvent): JSONEventData {
  return {
    id,
    type,
    contentType: "application/json",
    data: data as Record<string, unknown>,
    metadata: metadata as Record<string, unknown>,
  };
}

/** An event of `$all`, with its position in the whole log. */
export function itemOfAll({ event }: Pick<ResolvedEvent, "event">): LogItem | null {
  if (event?.position === undefined) return null;
  return { kind: "event", position: allPosition(event.position), event: loggedEvent(event) };
}

/** The text form of a position in `$all`. */
export const allPosition = ({ commit, prepare }: { readonly commit: bigint; readonly prepare: bigint }) =>
  `${commit}/${prepare}`;

/**
 * The event that a link of a category points to. Categories end at the first dash, so a category can contain streams of
 * other prefixes; those are skipped.
 */
export function itemOfLink({ event, link }: ResolvedEvent, streamPrefix: string): LogItem | null {
  const shown = link ?? event;
  if (shown === undefined) return null;
  const position = String(shown.revision);
  if (event !== undefined) {
    if (!event.streamId.startsWith(streamPrefix)) return { kind: "passed", position };
    return { kind: "event", position, event: loggedEvent(event) };
  }
  const text = Buffer.from(shown.data as Uint8Array).toString("utf8");
  const stream = text.slice(text.indexOf("@") + 1);
  return stream.startsWith(streamPrefix) ? { kind: "gone", position, link: text } : { kind: "passed", position };
}
