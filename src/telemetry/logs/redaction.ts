/** Shorter secrets are not redacted: they would match in almost every line. */
const LENGTH_MIN = 4;
const REDACTED = "[redacted]";

/** Returns a function that replaces every secret in a text, also where JSON escapes it. */
export function redactor(secrets: readonly string[]): (text: string) => string {
  const long = secrets.filter((secret) => secret.length >= LENGTH_MIN);
  const inJson = long.map((secret) => JSON.stringify(secret).slice(1, -1));
  // Longest first, because one secret can contain another.
  const all = [...new Set([...long, ...inJson])].sort((a, b) => b.length - a.length);
  return (text) => all.reduce((clean, secret) => clean.replaceAll(secret, REDACTED), text);
}
