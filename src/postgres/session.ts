import type { PoolClient, QueryArrayResult } from "pg";
import { isDemoted, isStatementError } from "./errors.ts";

/** Every value is the server's text. */
export type Row = readonly (string | null)[];

/** One connection in one transaction. Thrown errors are the driver's; the owner of the transaction translates them. */
export interface Session {
  /** One statement, optionally with parameters. Never a named prepared statement: PgBouncer may change the server. */
  rows(text: string, values?: readonly unknown[]): Promise<readonly Row[]>;
  /** Several statements without parameters in one round trip; the rows of each. */
  script(text: string): Promise<readonly (readonly Row[])[]>;
}

/**
 * Added to the server's own timeout, which normally fires first: this one is for a server that does not respond at all.
 */
const RESPONSE_GRACE_MS = 2_000;

/** A session on a client of the pool. */
export class ClientSession implements Session {
  readonly #client: PoolClient;
  readonly #timeoutMs: number;
  #broken = false;

  constructor(client: PoolClient, statementTimeoutMs: number) {
    this.#client = client;
    this.#timeoutMs = statementTimeoutMs + RESPONSE_GRACE_MS;
  }

  /** True when the connection cannot be used any more. */
  get broken(): boolean {
    return this.#broken;
  }

  async rows(text: string, values: readonly unknown[] = []): Promise<readonly Row[]> {
    return (await this.#send(text, values))[0] ?? [];
  }

  async script(text: string): Promise<readonly (readonly Row[])[]> {
    return await this.#send(text, []);
  }

  /** The command that the server reports: a COMMIT of a failed transaction is answered with ROLLBACK. */
  async command(text: string): Promise<string> {
    const results = await this.#query(text, []);
    return results.at(-1)?.command ?? "";
  }

  async #send(text: string, values: readonly unknown[]): Promise<readonly (readonly Row[])[]> {
    const results = await this.#query(text, values);
    return results.map(({ rows }) => rows);
  }

  async #query(text: string, values: readonly unknown[]): Promise<QueryArrayResult<(string | null)[]>[]> {
    // The type definitions know neither `query_timeout` per statement nor the list of results of several statements.
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
