/** Bytes for people: as text where they are UTF-8, so that nothing is parsed and no number is rounded. */
export interface ShownPayload {
  readonly encoding: "utf-8" | "base64";
  readonly text: string;
  /** Of the whole payload. */
  readonly bytes: number;
  readonly isTruncated: boolean;
}

/** A payload of which more is shown only on demand. */
export const SHOWN_BYTES_MAX = 1024 * 1024;

/** `start` holds the first bytes, all of them unless there are more than are shown. */
export function shownPayload(start: Buffer, bytes: number): ShownPayload {
  const isTruncated = bytes > start.length;
  try {
    // As a stream the decoder keeps a character that was cut in two to itself.
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(start, { stream: isTruncated });
    return { encoding: "utf-8", text, bytes, isTruncated };
  } catch {
    return { encoding: "base64", text: start.toString("base64"), bytes, isTruncated };
  }
}

/** The server writes bytea as \x and two digits per byte. */
export function bytesOf(hex: string | null | undefined): Buffer {
  return Buffer.from((hex ?? "").slice(2), "hex");
}
