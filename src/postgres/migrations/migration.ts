/** One step of the schema as text: `up` and `down` insert the schema's name and run nothing. */
export interface Migration {
  readonly version: number;
  readonly name: string;
  /**
   * The oldest schema version whose program works on this version too: programs are replaced one by one while the older
   * ones continue. Absent: this version only.
   */
  readonly servesFrom?: number;
  up(relaySchema: string): string;
  down(relaySchema: string): string;
}
