const BYTES_MAX = 8_192;
const WIDTH = 16;

export function bytesOfBase64(text: string): Uint8Array {
  const raw = atob(text.replace(/[^A-Za-z0-9+/]/g, ""));
  return Uint8Array.from(raw, (character) => character.charCodeAt(0));
}

/** A hex dump: sixteen bytes per line with their printable characters. */
export function hexText(bytes: Uint8Array): string {
  const lines: string[] = [];
  for (let at = 0; at < Math.min(bytes.length, BYTES_MAX); at += WIDTH) {
    const part = bytes.subarray(at, Math.min(at + WIDTH, BYTES_MAX));
    const hex = [...part].map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
    const text = [...part].map((byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : "·")).join("");
    lines.push(`${at.toString(16).padStart(6, "0")}  ${hex.padEnd(WIDTH * 3 - 1)}  ${text}`);
  }
  if (bytes.length > BYTES_MAX) lines.push(`… and ${bytes.length - BYTES_MAX} more bytes`);
  return lines.join("\n");
}
