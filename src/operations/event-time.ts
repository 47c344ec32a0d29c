/** A time as ISO 8601 with all of its digits; null for what that cannot say. */
export function isoSql(time: string): string {
  return `to_char(${time} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;
}
