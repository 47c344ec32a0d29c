/** A time as ISO 8601 with full precision; null for years that it cannot express. */
export function isoSql(time: string): string {
  return `to_char(${time} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;
}
