/** For a lane's `position`: true for a position in a log, false for the claims that a lane of a queue is sending. */
export function isLogPositionSql(position: string): string {
  return `(${position} is not null and not ${position} ? 'sending')`;
}
