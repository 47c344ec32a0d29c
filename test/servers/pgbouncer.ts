import { writeFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { installPrograms } from "./debian-programs.ts";
import { freePort } from "./free-port.ts";
import { startPlainServer } from "./plain-server.ts";
import type { ServerProcess } from "./server-process.ts";

export const PGBOUNCER = { pgbouncer: "pgbouncer" };

export type PgbouncerOptions = {
  /** Of the PostgreSQL behind it. */
  readonly targetPort: number;
  /** Who may connect, without a password check. */
  readonly users: readonly string[];
  /** Connections to the server per database and user. */
  readonly poolSize?: number;
};

/** A private PgBouncer in transaction mode on 127.0.0.1, with the settings of the Debian package otherwise. */
export type PgbouncerServer = ServerProcess & {
  readonly port: number;
  databaseUrl(name?: string, user?: string, password?: string): string;
};

export async function startPgbouncer({ targetPort, users, poolSize = 4 }: PgbouncerOptions): Promise<PgbouncerServer> {
  await installPrograms("PgBouncer", PGBOUNCER);
  const port = await freePort();
  const databaseUrl = (name = "postgres", user = "postgres", password?: string) => {
    const account = [user, ...(password === undefined ? [] : [password])].map(encodeURIComponent).join(":");
    return `postgres://${account}@127.0.0.1:${port}/${encodeURIComponent(name)}`;
  };
  const settings = (folder: string) => ({
    ...{ listen_addr: "127.0.0.1", listen_port: port, unix_socket_dir: "", pool_mode: "transaction" },
    ...{ auth_type: "trust", auth_file: join(folder, "users.txt"), default_pool_size: poolSize },
    // Each transaction of a client goes to another connection, so that nothing can lean on a session.
    server_round_robin: 1,
  });
  const server = await startPlainServer({
    name: "pgbouncer",
    prepare(folder) {
      const lines = Object.entries(settings(folder)).map(([name, value]) => `${name} = ${value}`);
      const databases = `[databases]\n* = host=127.0.0.1 port=${targetPort}\n`;
      writeFileSync(join(folder, "pgbouncer.ini"), `${databases}[pgbouncer]\n${lines.join("\n")}\n`);
      writeFileSync(join(folder, "users.txt"), users.map((user) => `"${user}" ""\n`).join(""));
    },
    command: (folder) => ({
      program: "/usr/sbin/pgbouncer",
      // It refuses to run as root.
      args: [...(process.getuid?.() === 0 ? ["-u", "postgres"] : []), join(folder, "pgbouncer.ini")],
    }),
    isReady: () => answers(databaseUrl()),
  });
  return Object.assign(server, { port, databaseUrl });
}

async function answers(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => {}); // connect() rejects as well
  try {
    await client.connect();
    return true;
  } finally {
    await client.end();
  }
}
