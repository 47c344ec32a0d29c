/** What a Retry-After header asks for, a number of seconds or a date, as a wait within bounds. Null when it is neither. */
export function retryAfterMs(written: string | undefined, wallMs: number, maxMs: number): number | null {
  if (written === undefined || written.length > 100) return null;
  const text = written.trim();
  const wantedMs = /^\d+$/.test(text) ? Number(text) * 1_000 : dateMs(text) - wallMs;
  return Number.isNaN(wantedMs) ? null : Math.min(Math.max(0, wantedMs), maxMs);
}

/** A date begins with the day of the week. The oldest form names no zone and means GMT. */
function dateMs(text: string): number {
  if (!/^[a-z]{3}/i.test(text)) return Number.NaN;
  return Date.parse(/\d{4}$/.test(text) ? `${text} GMT` : text);
}
