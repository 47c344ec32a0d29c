import { ApiError, apiUrl } from "../../kit/api.ts";
import { segment } from "../../kit/place.ts";
import type { Payload, ShownEvent } from "../../kit/types.ts";

type Named = Pick<ShownEvent, "id" | "source">;

export function payloadUrl({ id, source }: Named): string {
  return apiUrl(`/events/${segment(id)}/payload`, { source });
}

/** The payload byte for byte, as stored. The API sends binary payloads as base64. */
export async function fetchPayload(event: Named): Promise<Pick<Payload, "encoding" | "text">> {
  const answer = await fetch(payloadUrl(event), { headers: { "x-outbox-relay-console": "1" } });
  if (!answer.ok) throw await refusalOf(answer);
  const bytes = new Uint8Array(await answer.arrayBuffer());
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    return { encoding: "utf-8", text };
  } catch {
    return { encoding: "base64", text: base64Of(bytes) };
  }
}

async function refusalOf(answer: Response): Promise<ApiError> {
  const { code, detail, fix } = (await answer.json().catch(() => ({}))) as {
    code?: string;
    detail?: string;
    fix?: string;
  };
  const what = detail ?? `The payload could not be loaded: the service answered HTTP ${answer.status}`;
  return new ApiError(answer.status, code ?? String(answer.status), what, fix ?? null);
}

function base64Of(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}

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
