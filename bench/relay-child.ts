import { setTimeout as pauseMs } from "node:timers/promises";
import { delivered } from "../src/core/outcome.ts";
import type { Publisher } from "../src/ports/publisher.ts";
import { openDatabase } from "../src/postgres/pool.ts";
import { createRelay } from "../src/relay/relay.ts";
import { openOutboxSource } from "../src/sources/openoutbox/openoutbox-source.ts";
import { postgresSource } from "../src/sources/postgres/postgres-source.ts";

const { url, table, kind, until } = JSON.parse(process.env.BENCH ?? "{}") as {
  url: string;
  table: string;
  kind: "flag" | "openoutbox";
  until: "drained" | "idle for 20 s";
};

let count = 0;
const atOnce: Publisher = {
  name: "at once",
  capabilities: { keyOrderInBatch: true, deduplicates: false },
  publish: async (batch, report) => {
    for (let index = 0; index < batch.length; index += 1) report(index, delivered);
    count += batch.length;
  },
  close: async () => {},
};

const database = openDatabase({ url });
const source = kind === "flag" ? postgresSource({ database, table }) : openOutboxSource({ database, table });
const relay = createRelay({ sources: [source], destinations: { out: atOnce } });
for (const name of ["SourceBroken", "InstanceLost", "ChoreFailed", "LaneFailed", "IntentDeadLettered"] as const) {
  relay.on(name, (event) => void process.stderr.write(`${JSON.stringify(event, text)}\n`));
}

let rssBytes = 0;
const watch = setInterval(() => {
  rssBytes = Math.max(rssBytes, process.memoryUsage.rss());
}, 20);
let startedMs = performance.now();
let cpu = process.cpuUsage();
await relay.drain();
if (until !== "drained") {
  await resetStatements();
  startedMs = performance.now();
  cpu = process.cpuUsage();
  await pauseMs(20_000);
}
const ms = performance.now() - startedMs;
const used = process.cpuUsage(cpu);
const cpuPercent = ((used.user + used.system) / 1_000 / ms) * 100;
clearInterval(watch);
await relay.stop();
await database.close();
process.stdout.write(JSON.stringify({ delivered: count, ms, rssMb: rssBytes / 2 ** 20, cpuPercent }));

/** Only what is sent while idle counts. */
async function resetStatements(): Promise<void> {
  const { default: pg } = await import("pg");
  const client = new pg.Client({ connectionString: url.replace(/\/\/[^@]*@/, "//postgres@") });
  await client.connect();
  await client.query("select pg_stat_statements_reset()");
  await client.end();
}

function text(_: string, value: unknown): unknown {
  return typeof value === "bigint" ? String(value) : value;
}
