import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import pg from "pg";
import { delivered } from "../../src/core/outcome.ts";
import type { Publisher } from "../../src/ports/publisher.ts";
import { openDatabase } from "../../src/postgres/pool.ts";
import { plainCondition } from "../../src/postgres/type-condition.ts";
import { httpPublisher } from "../../src/publishers/http/http-publisher.ts";
import { createRelay } from "../../src/relay/relay.ts";
import { postgresSource } from "../../src/sources/postgres/postgres-source.ts";
import { freePort } from "../../test/servers/free-port.ts";
import { type PostgresServer, startPostgres } from "../../test/servers/postgres.ts";
import { until } from "../../test/servers/until.ts";
import { atLeast, atMost, type Figure, measured, type ScenarioOptions } from "../figure.ts";
import { fillTable } from "../outbox-tables.ts";
import { compileRelay, prepareDatabase } from "../relay-run.ts";
import { writeSteadily } from "../steady-writer.ts";

const ROWS = 100_000;
const BROKEN_ROWS = 20_000;
const STEADY = { perSecond: 500, seconds: 10 };
const ANSWER_MS = 2_000;
const ROUNDS = 3;
const OUTBOX = { eventType: "t.event_type", typeColumn: "t.event_type", key: "", correlationId: "", headersJson: "" };

/** One process, one table, two destinations: how the healthy one fares with and without a broken one beside it. */
export async function besideBroken(how: "dead" | "slow", { scale, say }: ScenarioOptions): Promise<Figure[]> {
  await compileRelay();
  const flags = ["-c", "fsync=on", "-c", "shared_preload_libraries=pg_stat_statements", "-c", "shared_buffers=512MB"];
  await using postgres = await startPostgres({ version: 18, onDisk: true, flags });
  await prepareDatabase(postgres);
  await using broken = how === "dead" ? await deadServer() : await slowServer();
  const rates: Record<"alone" | "beside", number[]> = { alone: [], beside: [] };
  const p99s: Record<"alone" | "beside", number[]> = { alone: [], beside: [] };
  for (let round = 0; round <= ROUNDS; round += 1) {
    for (const name of ["alone", "beside"] as const) {
      const run = await measure(postgres, broken.url, name === "alone" ? 0 : BROKEN_ROWS, scale);
      say(`  ${name}: ${Math.round(run.perSecond)} events/s, p99 ${run.p99.toFixed(1)} ms`);
      if (round === 0) continue;
      rates[name].push(run.perSecond);
      p99s[name].push(run.p99);
    }
  }
  const best = (values: readonly number[], order: 1 | -1) => values.toSorted((a, b) => order * (a - b))[0]!;
  return [
    measured("alone", best(rates.alone, -1), "events/s"),
    atLeast("throughput, beside / alone", (best(rates.beside, -1) / best(rates.alone, -1)) * 100, "%", 90),
    measured("p99 alone", best(p99s.alone, 1), "ms"),
    atMost("p99, beside / alone", best(p99s.beside, 1) / best(p99s.alone, 1), "x", 2),
  ];
}

interface Broken extends AsyncDisposable {
  readonly url: string;
}

async function deadServer(): Promise<Broken> {
  return { url: `http://127.0.0.1:${await freePort()}/`, [Symbol.asyncDispose]: async () => {} };
}

async function slowServer(): Promise<Broken> {
  const server = createServer((request, response) => {
    request.resume();
    setTimeout(() => response.writeHead(200).end(), ANSWER_MS);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Drains a backlog for the healthy destination, then times events that come one by one. */
async function measure(postgres: PostgresServer, brokenUrl: string, brokenRows: number, scale: number) {
  const rows = Math.round(ROWS * scale);
  await postgres.query(
    "truncate outbox_relay.instances, outbox_relay.lanes, outbox_relay.holds, outbox_relay.pipelines cascade",
  );
  await fillTable(postgres, "flag", { rows: rows + brokenRows, payloadBytes: 200, keys: 2_000 });
  // Spread evenly, so that they are in the way from the first page on.
  if (brokenRows > 0) {
    const every = Math.ceil((rows + brokenRows) / brokenRows);
    await postgres.query(`update public.outbox set event_type = 'broken' where (payload ->> 'n')::int % ${every} = 0`);
  }
  // As doctor prints them: an index for each pipeline, so that none has to step over what waits for the other.
  for (const mine of [true, false]) {
    const rules = [
      { pattern: "broken", mine },
      { pattern: "*", mine: !mine },
    ];
    const plain = plainCondition(OUTBOX, rules)?.replaceAll("t.", "");
    await postgres.query(`create index on public.outbox (created_at) where published = false and ${plain}`);
  }
  await postgres.query("vacuum (analyze) public.outbox");
  const { arrivals, healthy } = healthyPublisher();
  const database = openDatabase({ url: postgres.url });
  const relay = createRelay({
    sources: [postgresSource({ database, table: "public.outbox" })],
    destinations: { broken: httpPublisher({ url: brokenUrl }), healthy },
    routes: [{ types: ["broken"], destination: "broken" }, { destination: "healthy" }],
  });
  try {
    const wanted = await countHealthy(postgres);
    const startedMs = performance.now();
    await relay.start();
    await until("the backlog is drained", () => arrivals.count >= wanted, 120_000);
    const perSecond = (wanted * 1_000) / (performance.now() - startedMs);
    arrivals.byNumber.clear();
    const written = await writeSteadily(postgres.url, STEADY.perSecond, STEADY.seconds * scale);
    await until("all events have arrived", () => arrivals.byNumber.size >= written.length);
    const delays = written.map(({ committedMs }, n) => arrivals.byNumber.get(n)! - committedMs).sort((a, b) => a - b);
    return { perSecond, p99: Math.max(0.1, delays[Math.ceil(delays.length * 0.99) - 1]!) };
  } finally {
    await relay.stop();
    await database.close();
  }
}

async function countHealthy(postgres: PostgresServer): Promise<number> {
  const client = new pg.Client({ connectionString: postgres.url });
  await client.connect();
  const { rows } = await client.query("select count(*)::int as count from public.outbox where event_type <> 'broken'");
  await client.end();
  return rows[0].count;
}

/** Takes what it gets at once, so that the engine alone is measured. */
function healthyPublisher() {
  const arrivals = { count: 0, byNumber: new Map<number, number>() };
  const healthy: Publisher = {
    name: "healthy",
    capabilities: { keyOrderInBatch: true, deduplicates: false },
    publish: async (batch, report) => {
      const nowMs = performance.timeOrigin + performance.now();
      for (const [index, { payload }] of batch.entries()) {
        arrivals.count += 1;
        arrivals.byNumber.set(Number(/"n": (\d+)/.exec(payload.toString())?.[1]), nowMs);
        report(index, delivered);
      }
    },
    close: async () => {},
  };
  return { arrivals, healthy };
}
