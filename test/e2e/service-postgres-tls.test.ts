import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type Certificates, createCertificates } from "../servers/certificates.ts";
import type { PostgresServer } from "../servers/postgres.ts";
import { until } from "../servers/until.ts";
import { ORDERS } from "./outbox-tables.ts";
import { runCommand } from "./service-process.ts";
import { serverOfFile } from "./service-stage.ts";
import { openStage, type Stage } from "./stage.ts";

const server = serverOfFile();
let folder: string;
let certificates: Certificates;
before(async () => {
  folder = mkdtempSync(join(tmpdir(), "postgres-tls-"));
  certificates = await createCertificates(folder);
});
after(() => rmSync(folder, { recursive: true }));

/** The server itself writes its files, as the user that it runs as. */
async function write(postgres: PostgresServer, file: string, text: string): Promise<void> {
  await postgres.query(
    `copy (select unnest(string_to_array('${text}', e'\\n'))) to program 'cat > ${file}; chmod 600 ${file}'`,
  );
}

/** From then on the relay's role is let in with TLS only. */
async function requireTls(postgres: PostgresServer, { role }: Stage): Promise<void> {
  await write(postgres, "server.crt", certificates.server.certificate);
  await write(postgres, "server.key", certificates.server.key);
  await write(
    postgres,
    "pg_hba.conf",
    `hostssl all ${role} 127.0.0.1/32 trust\nhost all ${role} 127.0.0.1/32 reject\nhost all all 127.0.0.1/32 trust`,
  );
  await postgres.query("alter system set ssl = on");
  await postgres.query("select pg_reload_conf()");
  await until("the server offers TLS", async () => {
    const { rows } = await postgres.query<{ ssl: string }>("show ssl");
    return rows[0]?.ssl === "on";
  });
}

test("A20 G2: TLS to Postgres, with and without a look at who answers; without it the refusal is told", async () => {
  await using it = await openStage(server(), { database: "tls", tables: [ORDERS] });
  await requireTls(server(), it);
  const run = async (more: Readonly<Record<string, string>>) => {
    await it.sql(
      "insert into orders.outbox (id, aggregate_id, event_type, payload) values (gen_random_uuid(), 'a', 't', '{}')",
    );
    const env = { DATABASE_URL: it.relayUrl, OUTBOX_SCHEMAS: "orders", OUTBOX_DESTINATION: "stdout:", ...more };
    return await runCommand(["run", "--once"], env);
  };
  const plain = await run({});
  assert.deepEqual([plain.code, plain.stdout], [2, ""]);
  assert.match(plain.stderr, /pg_hba\.conf rejects connection.*no encryption/);

  const { authority, stranger } = certificates;
  const full = { PGSSLMODE: "verify-full", PGSSLROOTCERT: authority.certificateFile };
  for (const good of [{ PGSSLMODE: "require" }, full, { ...full, PGSSLMODE: "verify-ca" }]) {
    const { code, stdout, stderr } = await run(good);
    assert.deepEqual(
      [code, stdout.split("\n").filter((line) => line.startsWith('{"id":')).length > 0],
      [0, true],
      stderr,
    );
  }
  const wrong = await run({ ...full, PGSSLROOTCERT: stranger.certificateFile });
  assert.deepEqual([wrong.code, wrong.stdout], [2, ""], wrong.stderr);
  assert.match(wrong.stderr, /certificate/i);
});
