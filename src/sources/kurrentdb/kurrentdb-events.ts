import type { JSONEventData, RecordedEvent, ResolvedEvent } from "@kurrent/kurrentdb-client";
import type { LoggedEvent, LogItem, NewLoggedEvent } from "../../ports/event-log.ts";

type Recorded = Omit<RecordedEvent, "data" | "metadata"> & { readonly data: unknown; readonly metadata: unknown };

export function loggedEvent(event: Recorded): LoggedEvent {
  const { id, type, streamId: stream, revision, created } = event;
  return { id, type, stream, revision, createdMs: created.getTime(), data: dataOf(event), metadata: metadataOf(event) };
}

/** The client hands out text that is no JSON as it is, so that bare text counts as none. */
function dataOf({ isJson, data }: Recorded): unknown {
  return isJson && typeof data !== "string" ? data : undefined;
}

/** Bytes are what the client could not read as JSON. */
function metadataOf({ metadata }: Recorded): LoggedEvent["metadata"] {
  if (metadata === undefined) return {};
  const isObject = typeof metadata === "object" && metadata !== null;
  if (!isObject || Array.isArray(metadata) || metadata instanceof Uint8Array) return null;
  return metadata as Record<string, unknown>;
}

export function newEvent({ id, type, data, metadata }: NewLoggedEvent): JSONEventData {
  return {
    id,
    type,
    contentType: "application/json",
    data: data as Record<string, unknown>,
    metadata: metadata as Record<string, unknown>,
  };
}

/** An event of `$all`, whose position is where it stands in the whole log. */
export function itemOfAll({ event }: Pick<ResolvedEvent, "event">): LogItem | null {
  if (event?.position === undefined) return null;
  return { kind: "event", position: allPosition(event.position), event: loggedEvent(event) };
}

export const allPosition = ({ commit, prepare }: { readonly commit: bigint; readonly prepare: bigint }) =>
  `${commit}/${prepare}`;

/** What a link of a category leads to. Categories end at the first dash, so that one may hold foreign streams. */
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
