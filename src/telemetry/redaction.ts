/** Shorter ones would blot out half of every line, and nobody should have them. */
const LENGTH_MIN = 4;
const BLOT = "[redacted]";

/** Replaces every secret in a text, also inside JSON. */
export function redactor(secrets: readonly string[]): (text: string) => string {
  const long = secrets.filter((secret) => secret.length >= LENGTH_MIN);
  const inJson = long.map((secret) => JSON.stringify(secret).slice(1, -1));
  // The longest first: one may be part of another.
  const all = [...new Set([...long, ...inJson])].sort((a, b) => b.length - a.length);
  return (text) => all.reduce((clean, secret) => clean.replaceAll(secret, BLOT), text);
}
