import { delivered, rejected } from "../core/outcome.ts";
import { schedule } from "../core/retry-policy.ts";
import type { Publisher } from "../ports/publisher.ts";
import { migrateUp } from "../postgres/migrations/migrate.ts";
import { openDatabase } from "../postgres/pool.ts";
import { createRelay, type Relay } from "../relay/relay.ts";
import { postgresSource } from "../sources/postgres/postgres-source.ts";
import { discoverTables } from "../sources/postgres/table-discovery.ts";
import { buildShop, DEMO_ROLE, POISON_ORDER, Shoppers } from "./demo-shop.ts";
import { startEmbeddedServer } from "./embedded-server.ts";

const ORDER_EVERY_MS = 100;
const REPORT_EVERY_MS = 1_000;

const say = (line: string) => void process.stdout.write(`${line}\n`);

say("outbox-relay demo: starting an embedded PostgreSQL ...");
const server = await startEmbeddedServer();
const admin = openDatabase({ url: server.url });
await migrateUp(admin);
await buildShop(server.url);
const database = openDatabase({ url: server.url.replace("//postgres@", `//${DEMO_ROLE}@`) });
const tables = await discoverTables(database, { schemas: "*" });
const watched = watchedDestination();
const relay = createRelay({
  sources: tables.map((table) => postgresSource({ database, table })),
  destinations: { watched },
  routes: [{ destination: "watched", retry: schedule([1_000, 2_000]) }],
});
report(relay);
const shoppers = new Shoppers(server.url);
await shoppers.start(ORDER_EVERY_MS);
await relay.start();
say(`database   ${server.url}  (try: select * from outbox_relay.relay_state)`);
say(`tables     ${tables.map(({ schema, table }) => `${schema}.${table}`).join(", ")}`);
say(
  `traffic    ${1_000 / ORDER_EVERY_MS} orders a second; what ${POISON_ORDER} is billed for is poison, see outbox_relay.failed_events`,
);
say("Ctrl-C ends it and leaves nothing behind.\n");
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => void end());

/** Stands for a broker: takes everything but the poison. */
function watchedDestination(): Publisher & { count: number } {
  return {
    name: "watched",
    count: 0,
    capabilities: { keyOrderInBatch: false, deduplicates: false },
    async publish(batch, tell) {
      batch.forEach(({ event }, index) => {
        const isPoison = event.key === POISON_ORDER && event.type === "invoice.issued";
        if (!isPoison) this.count += 1;
        tell(index, isPoison ? rejected("the demo destination refuses this invoice") : delivered);
      });
    },
    close: async () => {},
  };
}

function report(told: Relay): void {
  const latest = new Map<string, string>();
  told.on("IntentRelayed", (event) =>
    latest.set(event.intentType, `${event.intentType} ${event.key} in ${event.durationMs.toFixed(1)} ms`),
  );
  told.on("IntentDeadLettered", (event) =>
    say(`DEAD LETTER ${event.intentType} ${event.recordId}: ${event.reason}; its key ${event.key} waits`),
  );
  told.on("SourceBroken", (event) => say(`SOURCE BROKEN ${event.pipeline}: ${event.reason}`));
  told.on("SourceRecovered", (event) => say(`SOURCE RECOVERED ${event.pipeline}`));
  const timer = setInterval(
    () => say(`delivered ${watched.count}   ${[...latest.values()].join(" | ")}`),
    REPORT_EVERY_MS,
  );
  timer.unref();
}

async function end(): Promise<void> {
  say("\nstopping: what is on the wire is finished and settled ...");
  await shoppers.stop();
  await relay.stop();
  await database.close();
  await admin.close();
  await server.stop();
  say("done");
}
