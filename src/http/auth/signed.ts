import { createHmac, timingSafeEqual } from "node:crypto";
import type { AccessConfig } from "../../config/access-config.ts";

/**
 * Derived from all secrets of the access rules: equal on every instance and after a restart, different as soon as a
 * token changes, and unknown to anyone who knows only one token.
 */
export function signingKey({ oidc, sessionSecret, tokens }: AccessConfig): Buffer {
  const parts = tokens.map(({ name, digest }) => `${name}:${digest.toString("hex")}`).sort();
  const secrets = JSON.stringify([sessionSecret, oidc?.issuer, oidc?.clientId, oidc?.clientSecret, parts]);
  return createHmac("sha256", "outbox-relay signed cookies 1").update(secrets).digest();
}

/** Signs claims. `purpose` keeps a value that was signed for one use from being accepted for another. */
export function signed(key: Buffer, purpose: string, claims: object): string {
  const body = Buffer.from(JSON.stringify(claims)).toString("base64url");
  return `${body}.${signatureOf(key, purpose, body).toString("base64url")}`;
}

/** The claims; null unless this key signed the text for this purpose. */
export function opened(key: Buffer, purpose: string, text: string): unknown {
  const [, body, signature] = /^([\w-]{1,4000})\.([\w-]{43})$/.exec(text) ?? [];
  if (body === undefined || signature === undefined) return null;
  const isOurs = timingSafeEqual(Buffer.from(signature, "base64url"), signatureOf(key, purpose, body));
  return isOurs ? (JSON.parse(Buffer.from(body, "base64url").toString()) as unknown) : null;
}

function signatureOf(key: Buffer, purpose: string, body: string): Buffer {
  return createHmac("sha256", key).update(`${purpose}.${body}`).digest();
}
