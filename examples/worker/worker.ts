import { createServer } from "node:http";
import pg from "pg";
import { createRelay, migrateUp, openDatabase, postgresSource } from "../../src/index.ts"; // in your project: "outbox-relay"
import { destinationOf } from "./destination.ts";
import { OUTBOX_TABLE, payOrder, placeOrder, SHOP_SQL } from "./shop.ts";

const { DATABASE_URL: url = "", AMQP_URL, PORT = "3000", ORDERS = "3" } = process.env;

// The application's own database connections, and its tables.
const pool = new pg.Pool({ connectionString: url });
await pool.query(SHOP_SQL);

// The relay beside it: it has connections of its own, so that neither waits for the other.
const database = openDatabase({ url });
await migrateUp(database);
const relay = createRelay({
  sources: [postgresSource({ database, table: OUTBOX_TABLE })],
  destinations: { broker: destinationOf(AMQP_URL) },
});
let delivered = 0;
relay.on("BatchSettled", (settled) => {
  delivered += settled.delivered;
});
await relay.start();

// Alive while the process answers; ready while the relay serves its table. An outage of the broker is no reason to restart.
const probes = createServer((request, response) => {
  const unready = relay.unready();
  const isReady = request.url !== "/readyz" || unready.length === 0;
  response.writeHead(isReady ? 200 : 503, { "content-type": "application/json" });
  response.end(JSON.stringify({ ok: isReady, unready, delivered }));
}).listen(Number(PORT));

// Customers. They need not wait for the relay (`await relay.ready`): what they write waits in the table.
const closing = new AbortController();
const business = sell();
async function sell(): Promise<number> {
  let placed = 0;
  while (placed < Number(ORDERS) && !closing.signal.aborted) {
    placed += 1;
    await placeOrder(pool, `order-${placed}`, placed * 10);
    await payOrder(pool, `order-${placed}`);
  }
  return placed;
}

// First no new business, then the relay: it finishes what is on the wire and hands over, so nothing is sent twice.
process.once("SIGTERM", async () => {
  closing.abort();
  const placed = await business;
  await relay.stop();
  const { rows } = await pool.query("select count(*)::int as waiting from shop.outbox where published_at is null");
  await Promise.all([pool.end(), database.close(), new Promise((done) => probes.close(done))]);
  console.log(`${placed} orders placed, ${delivered} events delivered, ${rows[0].waiting} left for the next start`);
});
