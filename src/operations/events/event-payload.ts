/** A payload for display: as text where it is UTF-8, never parsed, so that no number is rounded. */
export interface ShownPayload {
  readonly encoding: "utf-8" | "base64";
  readonly text: string;
  /** Of the whole payload. */
  readonly bytes: number;
  readonly isTruncated: boolean;
}

/** Larger payloads are shown only on demand. */
export const SHOWN_BYTES_MAX = 1024 * 1024;

/** `start` contains the first bytes: all of them, up to the display limit. */
export function shownPayload(start: Buffer, bytes: number): ShownPayload {
  const isTruncated = bytes > start.length;
  try {
    // In stream mode the decoder drops a character that was cut at the end.
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
