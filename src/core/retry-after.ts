/** The bounded wait that a Retry-After header asks for, in seconds or as a date. Null when the header is neither. */
export function retryAfterMs(written: string | undefined, wallMs: number, maxMs: number): number | null {
  if (written === undefined || written.length > 100) return null;
  const text = written.trim();
  const wantedMs = /^\d+$/.test(text) ? Number(text) * 1_000 : dateMs(text) - wallMs;
  return Number.isNaN(wantedMs) ? null : Math.min(Math.max(0, wantedMs), maxMs);
}

/** HTTP dates begin with the day of the week. The oldest form (asctime) names no time zone and means GMT. */
function dateMs(text: string): number {
  if (!/^[a-z]{3}/i.test(text)) return Number.NaN;
  return Date.parse(/\d{4}$/.test(text) ? `${text} GMT` : text);
}
