import { createHmac, timingSafeEqual } from "node:crypto";

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
  const signatures = keys.map((key) => `v1,${digestOf(key, id, String(timestampSeconds), body).toString("base64")}`);
  return [
    ["webhook-id", id],
    ["webhook-timestamp", String(timestampSeconds)],
    ["webhook-signature", signatures.join(" ")],
  ];
}

function digestOf(key: Buffer, id: string, timestampSeconds: string, body: Buffer): Buffer {
  return createHmac("sha256", key).update(`${id}.${timestampSeconds}.`).update(body).digest();
}

/** The Standard Webhooks headers of a request, as far as it has them. */
interface SignedHeaders {
  readonly id: string | undefined;
  readonly timestamp: string | undefined;
  readonly signature: string | undefined;
}

/** What is wrong with the signature of a request; null when one of the keys made it, at about this time. */
export function signatureFault(
  keys: readonly Buffer[],
  { id, signature, timestamp }: SignedHeaders,
  body: Buffer,
  { nowMs, toleranceMs }: { readonly nowMs: number; readonly toleranceMs: number },
): string | null {
  if (!id || !timestamp || !signature) return "webhook-id, webhook-timestamp or webhook-signature is missing";
  if (!/^\d{1,12}$/.test(timestamp)) return "webhook-timestamp is not a number of seconds";
  const ageMs = nowMs - Number(timestamp) * 1_000;
  if (Math.abs(ageMs) > toleranceMs) {
    return `it is ${Math.round(Math.abs(ageMs) / 1_000)} s ${ageMs > 0 ? "old" : "in the future"}`;
  }
  const given = signature.split(" ").filter((it) => it.startsWith("v1,"));
  const digests = given.map((it) => Buffer.from(it.slice("v1,".length), "base64"));
  const isOurs = keys.some((key) => {
    const expected = digestOf(key, id, timestamp, body);
    return digests.some((digest) => digest.length === expected.length && timingSafeEqual(digest, expected));
  });
  return isOurs ? null : "no signature fits id, time, body and one of the secrets";
}
