/** Of a lane's `position`: true for a place in a log, false for the claims that a lane of a queue is sending. */
export function isLogPlaceSql(position: string): string {
  return `(${position} is not null and not ${position} ? 'sending')`;
}
