import { after, before } from "node:test";
import { type PostgresServer, startPostgres } from "../servers/postgres.ts";
import type { OutboxTable } from "./outbox-tables.ts";
import { openStage, type Stage } from "./stage.ts";

/** One PostgreSQL for all tests of a file; there is none before the first of them runs. */
export function serverOfFile(): () => PostgresServer {
  let server: PostgresServer;
  before(async () => {
    server = await startPostgres({ version: 18 });
  });
  after(() => server[Symbol.asyncDispose]());
  return () => server;
}

/** Each call opens a database of its own, with the tables and the relay's schema and role, on the server of the file. */
export function stagesOn(
  server: () => PostgresServer,
  name: string,
  tables: readonly OutboxTable[],
): () => Promise<Stage> {
  let stages = 0;
  return async () => {
    stages += 1;
    return await openStage(server(), { database: `${name}_${stages}`, tables });
  };
}
