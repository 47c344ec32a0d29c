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
