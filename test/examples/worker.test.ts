import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { type ServiceProcess, startService } from "../e2e/service-process.ts";
import { freePort } from "../servers/free-port.ts";
import { type PostgresServer, startPostgres } from "../servers/postgres.ts";
import { startRabbit } from "../servers/rabbitmq.ts";
import { takeAll } from "../servers/rabbitmq-reader.ts";
import { until } from "../servers/until.ts";

const folder = new URL("../../examples/worker/", import.meta.url);
const program = fileURLToPath(new URL("worker.ts", folder));
let server: PostgresServer;

before(async () => {
  server = await startPostgres({ version: 18 });
});
after(() => server[Symbol.asyncDispose]());

async function startWorker(database: string, env: Record<string, string> = {}): Promise<ServiceProcess> {
  const port = String(await freePort());
  const settings = { DATABASE_URL: server.databaseUrl(database), PORT: port, ...env };
  return startService([program], settings, process.execPath);
}

const deliveredBy = async (worker: ServiceProcess): Promise<number> =>
  await worker.get("/livez").then(
    ({ json }) => Number(json().delivered),
    () => 0,
  );

/** Without what differs from run to run; between keys there is no order. */
function comparable(output: string): string[] {
  const lines = output
    .trim()
    .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/g, "<id>")
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "<time>")
    .split("\n");
  const keyOf = (line: string) => /"key":"(.*?)"/.exec(line)?.[1] ?? "~";
  return lines.toSorted((a, b) => keyOf(a).localeCompare(keyOf(b)));
}

test("C1 F5 the worker example prints what it promises, and ends by SIGTERM with nothing left", async () => {
  await server.createDatabase("plain");
  await using worker = await startWorker("plain");
  await until("all is delivered", async () => (await deliveredBy(worker)) === 6);
  await until("it is ready", async () => (await worker.get("/readyz")).status === 200);
  worker.kill("SIGTERM");
  const { code, stdout, stderr } = await worker.ended;
  assert.deepEqual({ code, stderr }, { code: 0, stderr: "" });
  assert.deepEqual(comparable(stdout), comparable(readFileSync(new URL("expected-output.txt", folder), "utf8")));
});

test("C1 C3 F5 stopped in the middle and started again, it loses and doubles nothing on its way to RabbitMQ", async () => {
  await using rabbit = await startRabbit();
  await server.createDatabase("broken_off");
  const env = { AMQP_URL: rabbit.url };
  await using first = await startWorker("broken_off", { ...env, ORDERS: "100000" });
  await until("it is in full swing", async () => (await deliveredBy(first)) > 200);
  first.kill("SIGTERM");
  const { code, stdout, stderr } = await first.ended;
  assert.deepEqual({ code, stderr }, { code: 0, stderr: "" });
  assert.match(stdout, /^\d+ orders placed, \d+ events delivered, \d+ left for the next start\n$/);

  await using second = await startWorker("broken_off", { ...env, ORDERS: "0" });
  const waiting = async () =>
    (await server.query("select from shop.outbox where published_at is null", [], "broken_off")).rowCount;
  await until("the rest is delivered", async () => (await waiting()) === 0);
  second.kill("SIGTERM");
  assert.equal((await second.ended).code, 0);

  const { rows } = await server.query<{ id: string }>("select id from shop.outbox", [], "broken_off");
  const messages = await takeAll(rabbit.url, "shop.mail");
  assert.deepEqual(
    messages.map(({ properties }) => String(properties.messageId)).sort(),
    rows.map(({ id }) => id).sort(),
  );
  const typesOf = Map.groupBy(messages, ({ content }) => (JSON.parse(content.toString()) as { id: string }).id);
  for (const [id, ofOrder] of typesOf) {
    assert.deepEqual(
      ofOrder.map(({ fields }) => fields.routingKey),
      ["order.placed", "order.paid"],
      id,
    );
  }
});

test("C8 the worker is alive but not ready while its database does not answer", async () => {
  await server.createDatabase("outage");
  await using worker = await startWorker("outage", { ORDERS: "0" });
  await until("it is ready", async () => (await worker.get("/readyz").catch(() => null))?.status === 200);
  await server.query("alter table shop.outbox rename to hidden", [], "outage");
  await until("it says so", async () => (await worker.get("/readyz")).status === 503);
  assert.match(JSON.stringify((await worker.get("/readyz")).json()), /shop\.outbox->broker.*shop\.outbox/);
  assert.equal((await worker.get("/livez")).status, 200);
  await server.query("alter table shop.hidden rename to outbox", [], "outage");
  await until("it is ready again", async () => (await worker.get("/readyz")).status === 200);
});
