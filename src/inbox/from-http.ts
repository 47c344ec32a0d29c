import { RelayError } from "../core/errors.ts";
import { secretKey, signatureFault } from "../core/webhook-signature.ts";
import { type InboxMessage, inboxMessage, textHeaders } from "./inbox-message.ts";

/** A request of the relay, from any HTTP server: the body as it came, not parsed. */
export interface HttpRequest {
  readonly headers: Headers | Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: Uint8Array | string;
}

/** How `fromHttp` finds out who sent a request. */
export interface HttpVerification {
  /**
   * The secrets of Standard Webhooks that the relay may sign with (`HTTP_SIGNING_SECRET`), the old one beside the new one while
   * they change. Null: anyone may send, because something else authenticates the request.
   */
  readonly signingSecrets: readonly string[] | null;
  /** The age from which a signed request is refused as a copy, 5 min by default. */
  readonly toleranceMs?: number;
  /** The present time, for tests. */
  readonly nowMs?: () => number;
}

const TOLERANCE_MS = 300_000;

/**
 * A request as a message for `consume`. Throws SIGNATURE_INVALID for a request that none of the secrets signed: answer it with
 * 401, and any other error with 500, so that the relay tries again.
 */
export function fromHttp({ body, headers: given }: HttpRequest, verification: HttpVerification): InboxMessage {
  const headers = decoded(lowerCased(given));
  const payload = typeof body === "string" ? Buffer.from(body, "utf8") : Buffer.from(body);
  const { signingSecrets } = verification;
  if (signingSecrets !== null) verify(signingSecrets, headers, payload, verification);
  return inboxMessage("HTTP", {
    // The other headers are not signed: an attacker could send a copy under another id.
    id: signingSecrets === null ? (headers["event-id"] ?? headers["idempotency-key"]) : headers["webhook-id"],
    type: headers["event-type"],
    key: headers["partition-key"],
    headers,
    payload,
  });
}

function verify(
  secrets: readonly string[],
  headers: Readonly<Record<string, string>>,
  body: Buffer,
  { nowMs = Date.now, toleranceMs = TOLERANCE_MS }: HttpVerification,
): void {
  const keys = secrets.map((secret) => {
    const key = secretKey(secret);
    if (typeof key === "string")
      throw new RelayError("CONFIG_INVALID", `A secret of signingSecrets is invalid: ${key}.`);
    return key;
  });
  if (keys.length === 0) throw new RelayError("CONFIG_INVALID", "signingSecrets is empty: name at least one.");
  const signed = {
    id: headers["webhook-id"],
    timestamp: headers["webhook-timestamp"],
    signature: headers["webhook-signature"],
  };
  const fault = signatureFault(keys, signed, body, { nowMs: nowMs(), toleranceMs });
  if (fault !== null) throw new RelayError("SIGNATURE_INVALID", `The request is not from the relay: ${fault}.`);
}

function lowerCased(headers: HttpRequest["headers"]): Record<string, string> {
  const entries = headers instanceof Headers ? headers : Object.entries(headers);
  return textHeaders([...entries].map(([name, value]) => [name.toLowerCase(), value] as const));
}

/** HTTP carries visible ASCII; the relay encodes other values and names their headers. */
function decoded(headers: Record<string, string>): Readonly<Record<string, string>> {
  const named = (headers["percent-encoded-headers"] ?? "").split(",").map((name) => name.trim());
  const encoded = Object.keys(headers).filter((name) => named.includes(name) || name.startsWith("ce-"));
  return { ...headers, ...Object.fromEntries(encoded.map((name) => [name, decodedValue(headers[name] ?? "")])) };
}

function decodedValue(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    // Not encoded after all.
    return value;
  }
}
