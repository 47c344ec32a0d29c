import assert from "node:assert/strict";
import { globSync, readFileSync, symlinkSync } from "node:fs";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { build } from "esbuild";
import { readPage } from "../documents/page.ts";
import { type ServiceProcess, startService } from "../e2e/service-process.ts";
import { freePort } from "../servers/free-port.ts";
import { type PostgresServer, startPostgres } from "../servers/postgres.ts";
import { createScratch } from "../servers/scratch.ts";
import { until } from "../servers/until.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const example = join(ROOT, "examples/nestjs");
const scratch = createScratch("nestjs", "memory");
const program = join(scratch.path, "main.mjs");
let server: PostgresServer;

before(async () => {
  server = await startPostgres({ version: 18 });
  // As the example's README does it.
  await build({
    entryPoints: [join(example, "main.ts")],
    bundle: true,
    packages: "external",
    platform: "node",
    format: "esm",
    outfile: program,
  });
  symlinkSync(join(ROOT, "node_modules"), join(scratch.path, "node_modules"));
});
after(async () => {
  await server[Symbol.asyncDispose]();
  await scratch.remove();
});

/** Without what differs from run to run; between keys there is no order. */
function comparable(output: string): string[] {
  return output
    .trim()
    .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/g, "<id>")
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "<time>")
    .split("\n")
    .toSorted();
}

test("C1 F5 H4 the Nest example writes by TypeORM, relays in its process and drains at SIGTERM", async () => {
  const port = String(await freePort());
  await using app: ServiceProcess = startService([program], { DATABASE_URL: server.url, PORT: port }, process.execPath);
  const place = async (id: string, total: number) =>
    await fetch(`http://127.0.0.1:${port}/orders`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ id, total }),
    });
  const health = async () => await app.get("/health").catch(() => null);
  await until("the relay reads", async () => (await health())?.status === 200);
  const { details } = (await health())!.json() as { details: unknown };
  assert.deepEqual(details, { outbox: { status: "up", relay: "in this process" } });

  for (const number of [1, 2]) assert.equal((await place(`order-${number}`, number * 10)).status, 201);
  const refused = await place("order-0", -1);
  assert.equal(refused.status, 400);
  assert.match(await refused.text(), /payload does not match the schema of its type \(zod\): total/);
  // The last one is under way when the application is told to end.
  assert.equal((await place("order-3", 30)).status, 201);
  app.kill("SIGTERM");
  const { stdout, stderr } = await app.ended;
  // Terminus reports each check that came before the relay had read its source.
  const faults = stderr.split("\n").filter((line) => line !== "" && !line.includes("it has not read its source yet"));
  assert.deepEqual(faults, []);
  assert.deepEqual(comparable(stdout), comparable(readFileSync(join(example, "expected-output.txt"), "utf8")));

  const { rows } = await server.query(`select orders.id, published_at is not null as published
    from shop.orders full join shop.outbox on aggregate_id = orders.id order by 1`);
  const published = ["order-1", "order-2", "order-3"].map((id) => ({ id, published: true }));
  assert.deepEqual(rows, published);
  const instances = await server.query("select from outbox_relay.instances");
  assert.equal(instances.rowCount, 0);
});

test("A21 the recipe shows files of the example as they are", () => {
  const shown = readPage("docs/recipes/nestjs.md").blocks.filter(({ language }) => language === "ts");
  const files = globSync("*.ts", { cwd: example }).map((file) => readFileSync(join(example, file), "utf8"));
  const inProject = files.map((text) => text.replaceAll(/from "[^"]+"; \/\/ in your project: ("[^"]+")/g, "from $1;"));
  assert.equal(shown.length, 3);
  for (const { text, line } of shown) assert.ok(inProject.includes(text), `line ${line} differs from its file`);
});
