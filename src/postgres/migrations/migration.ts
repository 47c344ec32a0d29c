/** One step of the schema's life, as text: `up` and `down` fill the schema's name in and run nothing. */
export interface Migration {
  readonly version: number;
  readonly name: string;
  /**
   * The oldest version of the schema whose program works on this one as well: programs are replaced one by one, while
   * their predecessors go on. Absent: this version's own.
   */
  readonly servesFrom?: number;
  up(relaySchema: string): string;
  down(relaySchema: string): string;
}
