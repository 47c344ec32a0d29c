import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import type { PostgresServer } from "../servers/postgres.ts";
import { postgresBinaries } from "../servers/postgres-binaries.ts";

const run = promisify(execFile);

/** A backup of the whole server as it is at the call; the returned function puts it back, and all that came later is gone. */
export async function backup(server: PostgresServer): Promise<() => Promise<void>> {
  const data = join(server.folder, "data");
  const copy = join(server.folder, "backup");
  await server.stop();
  await run("cp", ["-a", data, copy]);
  await server.restart();
  return async () => {
    await server.stop();
    await run("rm", ["-rf", data]);
    await run("mv", [copy, data]);
    await server.restart();
  };
}

/** Restores the dump of a database in a new one, also on another server. The roles must be there. */
export async function copyDatabase(
  from: { readonly server: PostgresServer; readonly database: string },
  to: { readonly server: PostgresServer; readonly database: string },
): Promise<void> {
  const tools = await postgresBinaries(15);
  const file = join(from.server.folder, `${to.database}.sql`);
  await run(join(tools, "pg_dump"), ["-f", file, from.server.databaseUrl(from.database)]);
  await to.server.createDatabase(to.database);
  const flags = ["-q", "-X", "-v", "ON_ERROR_STOP=1", "-f", file];
  await run(join(tools, "psql"), [...flags, to.server.databaseUrl(to.database)]);
}
