/** One step of the schema's life, as text: `up` and `down` fill the schema's name in and run nothing. */
export interface Migration {
  readonly version: number;
  readonly name: string;
  up(relaySchema: string): string;
  down(relaySchema: string): string;
}
