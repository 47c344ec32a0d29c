import type { PgTransaction } from "../postgres/transaction-handle.ts";

/** A pool of pg, by its shape. */
export interface PgPool<Client extends PgPoolClient> {
  connect(): Promise<Client>;
}

/** A client of a pool of pg, by its shape. */
export interface PgPoolClient extends PgTransaction {
  release(error?: Error | boolean): void;
  on?(event: "error", listener: () => void): unknown;
  off?(event: "error", listener: () => void): unknown;
}

/** Runs work in a transaction: it commits when the work resolves, and rolls back when it rejects. */
export type TransactionRunner<Handle> = <Result>(work: (transaction: Handle) => Promise<Result>) => Promise<Result>;

/** For pg, which has no such function of its own: `createInbox({ table, transaction: pgTransaction(pool) })`. */
export function pgTransaction<Client extends PgPoolClient>(pool: PgPool<Client>): TransactionRunner<Client> {
  return async (work) => {
    const client = await pool.connect();
    // The statement that runs rejects. Without a listener, the end of a connection would end the process as well.
    const onError = () => {};
    client.on?.("error", onError);
    try {
      await client.query("begin");
      const result = await work(client);
      await client.query("commit");
      release(client, onError);
      return result;
    } catch (error) {
      // A connection that cannot roll back is not given to anybody else; its end rolls back too.
      const isBroken = await client.query("rollback").then(
        () => false,
        () => true,
      );
      release(client, onError, isBroken);
      throw error;
    }
  };
}

function release(client: PgPoolClient, onError: () => void, isBroken = false): void {
  if (!isBroken) client.off?.("error", onError);
  client.release(isBroken);
}
