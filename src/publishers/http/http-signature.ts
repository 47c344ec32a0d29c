import { createHmac } from "node:crypto";

const PREFIX = "whsec_";
const BYTES_MIN = 24;
const BYTES_MAX = 64;

/** The key of a Standard Webhooks secret, or what to write instead. */
export function secretKey(secret: string): Buffer | string {
  const expected = `write ${PREFIX} and the base64 of ${BYTES_MIN} to ${BYTES_MAX} random bytes`;
  if (!secret.startsWith(PREFIX)) return expected;
  const encoded = secret.slice(PREFIX.length);
  const key = Buffer.from(encoded, "base64");
  const isBase64 = key.toString("base64").replace(/=+$/, "") === encoded.replace(/=+$/, "");
  return isBase64 && key.length >= BYTES_MIN && key.length <= BYTES_MAX ? key : expected;
}

/**
 * The Standard Webhooks headers, by which a receiver verifies the sender, the time and the body: one signature per key.
 */
export function signatureHeaders(
  keys: readonly Buffer[],
  id: string,
  timestampSeconds: number,
  body: Buffer,
): readonly [name: string, value: string][] {
  const signatures = keys.map((key) => {
    const hmac = createHmac("sha256", key).update(`${id}.${timestampSeconds}.`).update(body);
    return `v1,${hmac.digest("base64")}`;
  });
  return [
    ["webhook-id", id],
    ["webhook-timestamp", String(timestampSeconds)],
    ["webhook-signature", signatures.join(" ")],
  ];
}
