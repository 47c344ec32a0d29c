import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, test } from "node:test";
import { grantsFor } from "../../src/postgres/grants.ts";
import { quoteTable } from "../../src/postgres/identifiers.ts";
import { managedTableSql } from "../../src/postgres/managed/managed-table.sql.ts";
import { SeededRandom } from "../../src/testing/simulator/seeded-random.ts";
import { createFleet, type RelayFleet } from "../e2e/relay-fleet.ts";
import { openStage, type Stage } from "../e2e/stage.ts";
import { startPostgres } from "../servers/postgres.ts";
import { programPath } from "../servers/program-path.ts";
import { type Sink, startSink } from "../servers/sink.ts";
import { until } from "../servers/until.ts";
import { MANAGED } from "./log-tables.ts";

const seed = Number(process.env.CHAOS_SEED ?? Date.now() % 1_000_000);
/** The first refuses everything for a while; of the second, one event is refused for good. */
const [SICK, POISONED] = ["sick", "poisoned"];
const HEALTHY = ["a", "b", "c", "d"];
const EVENTS_PER_KEY = 15;
/** Small, so that a bound made of it says something. */
const IN_FLIGHT_MAX = 6;
const LEASE_MS = 5_000;
const RELAYS = 2;

describe("relays of a managed outbox that die over parked events", () => {
  test("F2 F4 A3: killed while a key waits behind a poison event and while it drains, nothing is lost and every key stays in order", async (t) => {
    t.diagnostic(`CHAOS_SEED=${seed}`);
    const random = new SeededRandom(seed);
    await using scene = await openScene();
    const { fleet, sink, stage } = scene;
    const written: Written = new Map();
    await write(stage, written, EVENTS_PER_KEY);
    const [poison] = written.get(POISONED)!;
    await sink.order({ kind: "retry", key: SICK });
    await sink.order({ kind: "reject", id: poison! });
    await startRelays(fleet);
    await healthyDelivered(scene, written);

    await killAll(fleet);
    await write(stage, written, EVENTS_PER_KEY);
    await startRelays(fleet);
    await healthyDelivered(scene, written);
    await until("both keys are parked whole", async () => (await count(stage, "parked")) === 4 * EVENTS_PER_KEY);
    const before = await arrivals(sink);
    const healthyCount = HEALTHY.length * 2 * EVENTS_PER_KEY;
    assert.equal(before.length, healthyCount, "the dead had nothing in flight, and nothing may come twice");

    // Effects at once, answers late: whoever dies now leaves deliveries that nobody has settled.
    await sink.clearFaults();
    for (const key of [SICK, POISONED]) await sink.order({ kind: "delay", key, ms: 30 });
    await replay(stage, poison!);
    const kills = 2;
    for (let round = 1; round <= kills; round += 1) {
      await sink.waitFor(before.length + round * 15 + random.int(0, 10));
      await killAll(fleet);
      assert.notEqual(await count(stage, "parked"), 0, "too late: they had drained already");
      await write(stage, written, 2);
      await startRelays(fleet);
    }
    const all = [...written.values()].flat();
    await until("everything has arrived", async () => new Set(await arrivals(sink)).size === all.length);
    await until("nothing waits", async () => (await count(stage, "parked")) + (await count(stage, "holds")) === 0);
    await Promise.all(fleet.processes.filter(({ isRunning }) => isRunning).map((relay) => relay.terminate()));

    const seen = await arrivals(sink);
    const firsts = [...new Set(seen)];
    for (const [key, ids] of written) {
      const own = new Set(ids);
      assert.deepEqual(
        firsts.filter((id) => own.has(id)),
        ids,
        `the order of ${key}`,
      );
    }
    const duplicates = seen.length - firsts.length;
    t.diagnostic(`${all.length} events, ${seen.length} arrivals, ${duplicates} of them again`);
    assert.ok(duplicates <= kills * RELAYS * IN_FLIGHT_MAX, `${duplicates} came twice: more than were in flight`);
  });
});

/** Ids by key, in the order of writing. */
type Written = Map<string, string[]>;

interface Scene extends AsyncDisposable {
  readonly stage: Stage;
  readonly sink: Sink;
  readonly fleet: RelayFleet;
}

async function openScene(): Promise<Scene> {
  await using started = new AsyncDisposableStack();
  const [postgres, sink] = await Promise.all([startPostgres({ version: 18 }), startSink()]);
  started.use(postgres);
  started.use(sink);
  const stage = started.use(await openStage(postgres, { database: "shop", tables: [] }));
  await stage.sql(managedTableSql({ table: MANAGED, payload: "text", partition: "1 day", wakeUp: false }));
  await stage.sql(grantsFor({ role: stage.role, tables: [MANAGED] }));
  const fleet = started.use(
    createFleet({
      databaseUrl: stage.relayUrl,
      sinkPort: sink.port,
      script: programPath(join(import.meta.dirname, "log-relay-process.ts")),
      variables: { SOURCE: "managed" },
      tables: [MANAGED],
      leaseMs: LEASE_MS,
      limits: { batchSize: 3, inFlightEventsMax: IN_FLIGHT_MAX, pageRows: 10 },
      retry: { initialMs: 20, maxMs: 200, attemptsMax: 1_000 },
      timing: { leaseMarginMs: 500, publishTimeoutMs: 3_500, balanceMs: 200, pollIntervalMs: 50, reviewMs: 300 },
    }),
  );
  const owned = started.move();
  return { stage, sink, fleet, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** So many events of every key, in turn, each in a transaction of its own. */
async function write(stage: Stage, written: Written, events: number): Promise<void> {
  for (let at = 0; at < events; at += 1) {
    for (const key of [...HEALTHY, SICK, POISONED]) {
      const [row] = await stage.sql<{ id: string }>(
        `insert into ${quoteTable(MANAGED)} (event_type, event_key, payload) values ('order.placed', $1, '{}')
         returning event_id as id`,
        [key],
      );
      written.set(key, [...(written.get(key) ?? []), row!.id]);
    }
  }
}

async function startRelays(fleet: RelayFleet): Promise<void> {
  for (let n = 1; n <= RELAYS; n += 1) await fleet.start(`relay-${fleet.processes.length + 1}`);
}

async function killAll(fleet: RelayFleet): Promise<void> {
  await Promise.all(fleet.processes.map((relay) => relay.kill()));
}

/** And settled: whoever is killed after this has nothing of theirs in flight. */
async function healthyDelivered({ sink, stage }: Scene, written: Written): Promise<void> {
  const ids = HEALTHY.flatMap((key) => written.get(key) ?? []);
  await until("all healthy keys have arrived", async () => {
    const seen = new Set(await arrivals(sink));
    return ids.every((id) => seen.has(id));
  });
  await until("all of them are settled", async () => {
    const [row] = await stage.sql<{ total: string }>(
      "select coalesce(sum(total_events_published), 0) as total from outbox_relay.relay_state",
    );
    return Number(row?.total) >= ids.length;
  });
}

async function arrivals(sink: Sink): Promise<string[]> {
  return (await sink.arrivals()).map(({ id }) => id);
}

async function count(stage: Stage, table: "parked" | "holds"): Promise<number> {
  const [row] = await stage.sql<{ count: string }>(`select count(*) from outbox_relay.${table}`);
  return Number(row?.count);
}

/** What an operator does: the dead event is tried again from the start. */
async function replay(stage: Stage, id: string): Promise<void> {
  const rows = await stage.sql(
    `with hold as (
       update outbox_relay.holds set state = 'retrying', attempts = 0, next_at = clock_timestamp()
       where event_id = $1 and state = 'dead' returning pipeline, event_id)
     delete from outbox_relay.failed_events f using hold h
     where f.pipeline = h.pipeline and f.original_event_id = h.event_id returning 1`,
    [id],
  );
  assert.equal(rows.length, 1, "the poison event was no dead letter");
}
