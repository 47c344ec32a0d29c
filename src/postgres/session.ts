import type { PoolClient, QueryArrayResult } from "pg";
import { isDemoted, isStatementError } from "./errors.ts";

/** Every value is the server's text. */
export type Row = readonly (string | null)[];

/** One connection in one transaction. Thrown errors are the driver's; the owner of the transaction translates them. */
export interface Session {
  /** One statement, with parameters if need be. Never a named prepared statement: PgBouncer may change the server. */
  rows(text: string, values?: readonly unknown[]): Promise<readonly Row[]>;
  /** Several statements without parameters in one round trip; the rows of each. */
  script(text: string): Promise<readonly (readonly Row[])[]>;
}

/** The server's own timeout answers first; this one is for a server that answers nothing at all. */
const SILENCE_MS = 2_000;

export class ClientSession implements Session {
  readonly #client: PoolClient;
  readonly #timeoutMs: number;
  #broken = false;

  constructor(client: PoolClient, statementTimeoutMs: number) {
    this.#client = client;
    this.#timeoutMs = statementTimeoutMs + SILENCE_MS;
  }

  /** True when the connection is of no use any more. */
  get broken(): boolean {
    return this.#broken;
  }

  async rows(text: string, values: readonly unknown[] = []): Promise<readonly Row[]> {
    return (await this.#send(text, values))[0] ?? [];
  }

  async script(text: string): Promise<readonly (readonly Row[])[]> {
    return await this.#send(text, []);
  }

  /** The command that the server says it carried out: a COMMIT of a failed transaction answers ROLLBACK. */
  async command(text: string): Promise<string> {
    const results = await this.#query(text, []);
    return results.at(-1)?.command ?? "";
  }

  async #send(text: string, values: readonly unknown[]): Promise<readonly (readonly Row[])[]> {
    const results = await this.#query(text, values);
    return results.map(({ rows }) => rows);
  }

  async #query(text: string, values: readonly unknown[]): Promise<QueryArrayResult<(string | null)[]>[]> {
    // The types know neither `query_timeout` per statement nor the list of results that several statements give.
    const query = { text, values: [...values], rowMode: "array" as const, query_timeout: this.#timeoutMs };
    try {
      const result: unknown = await this.#client.query<(string | null)[]>(query);
      return (Array.isArray(result) ? result : [result]) as QueryArrayResult<(string | null)[]>[];
    } catch (error) {
      if (!isStatementError(error) || isDemoted(error)) this.#broken = true;
      throw error;
    }
  }
}
