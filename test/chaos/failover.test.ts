import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { describeVerdict, judge, type Verdict } from "../e2e/checker.ts";
import { BILLING, ORDERS } from "../e2e/outbox-tables.ts";
import { createFleet, type RelayFleet } from "../e2e/relay-fleet.ts";
import { openStage, type Stage } from "../e2e/stage.ts";
import { countPending, createAggregates, readLedger, readOutbox, startWriters, type Writers } from "../e2e/writer.ts";
import { type ReplicatedPostgres, startReplicated } from "../servers/postgres-standby.ts";
import { type Sink, startSink } from "../servers/sink.ts";
import { until } from "../servers/until.ts";

const TABLES = [ORDERS, BILLING];
const KEYS = 30;
const LEASE_MS = 2_500;

interface Scene {
  readonly pair: ReplicatedPostgres;
  readonly sink: Sink;
  readonly stage: Stage;
  readonly fleet: RelayFleet;
  write(seed: number): Writers;
}

describe("failover to an asynchronous standby", () => {
  test("A3 B4: commits that the standby lacks are forgotten, what survives is delivered in order and no epoch repeats", async () => {
    await withScene(async (scene) => {
      const { fleet, pair, sink } = scene;
      const before = scene.write(1);
      await sink.waitFor(100);
      await pair.caughtUp();
      pair.pauseReplication();
      // A take-over that the standby never hears of: its epochs must not come a second time.
      const [first] = fleet.processes;
      await first!.kill();
      const joined = first!.told.findLast(({ name }) => name === "InstanceJoined")?.instance;
      await until("the dead relay's lanes are free", () =>
        fleet.told("InstanceReaped").some(({ instance }) => instance === joined),
      );
      await fleet.start("relay-3");
      const { length } = await sink.arrivals();
      await sink.waitFor(length + 100);
      const lanesTaken = fleet.told("LaneTaken").length;
      await pair.failover();
      await before.stop();

      const after = scene.write(2);
      await until("lanes are taken on the new primary", () => fleet.told("LaneTaken").length > lanesTaken);
      await sink.waitFor((await sink.arrivals()).length + 100);
      await after.stop();
      const verdict = await drainAndJudge(scene);
      assert.ok(verdict.unknown.length > 0, "no commit was lost: the test shows nothing");
      assertSurvivorsDelivered(verdict);
      assertEpochsUnique(fleet);
    });
  });

  test("A3 B4: without a lost commit nothing is lost or repeated, and the relays find the new primary by themselves", async () => {
    await withScene(async (scene) => {
      const { fleet, pair, sink } = scene;
      const before = scene.write(3);
      await sink.waitFor(100);
      await before.stop();
      await allMarked(scene.stage);
      await pair.caughtUp();
      await pair.failover();

      const after = scene.write(4);
      await sink.waitFor((await sink.arrivals()).length + 100);
      await after.stop();
      const verdict = await drainAndJudge(scene);
      assertSurvivorsDelivered(verdict);
      assert.deepEqual(verdict.unknown, [], describeVerdict(verdict));
      assert.equal(verdict.duplicates, 0, describeVerdict(verdict));
      assertEpochsUnique(fleet);
    });
  });
});

async function withScene(run: (scene: Scene) => Promise<void>): Promise<void> {
  await using started = new AsyncDisposableStack();
  const [pair, sink] = await Promise.all([startReplicated({ version: 18 }), startSink()]);
  started.use(pair);
  started.use(sink);
  const place = {
    databaseUrl: (name?: string, user?: string, password?: string) => pair.databaseUrl(name, user, password),
    query: (sql: string) => pair.primary.query(sql),
  };
  const stage = started.use(await openStage(place, { database: "shop", tables: TABLES }));
  await createAggregates(stage.pool, KEYS);
  const fleet = started.use(
    createFleet({
      databaseUrl: stage.relayUrl,
      sinkPort: sink.port,
      tables: TABLES,
      leaseMs: LEASE_MS,
      limits: { batchSize: 10, inFlightEventsMax: 40, pageRows: 20 },
      timing: { leaseMarginMs: 500, publishTimeoutMs: 1_500, balanceMs: 250, pollIntervalMs: 100 },
    }),
  );
  await Promise.all([fleet.start("relay-1"), fleet.start("relay-2")]);
  const write = (seed: number) => startWriters({ url: stage.url, tables: TABLES, keys: KEYS, seed });
  await run({ pair, sink, stage, fleet, write });
}

async function allMarked(stage: Stage): Promise<void> {
  await until("all events are marked", async () => (await countPending(stage.pool, TABLES)) === 0);
}

async function drainAndJudge({ fleet, sink, stage }: Scene): Promise<Verdict> {
  await allMarked(stage);
  await Promise.all(fleet.processes.filter(({ isRunning }) => isRunning).map((relay) => relay.terminate()));
  return judge(await readLedger(stage.pool), await sink.arrivals(), await readOutbox(stage.pool, TABLES));
}

function assertSurvivorsDelivered(verdict: Verdict): void {
  const { lost, inversions, corrupt, unmarked, markedInVain } = verdict;
  assert.deepEqual(
    { lost, inversions, corrupt, unmarked, markedInVain },
    { lost: [], inversions: [], corrupt: [], unmarked: [], markedInVain: [] },
    describeVerdict(verdict),
  );
}

function assertEpochsUnique(fleet: RelayFleet): void {
  const epochs = fleet.told("LaneTaken").map(({ pipeline, lane, epoch }) => `${pipeline} ${lane} ${epoch}`);
  assert.equal(new Set(epochs).size, epochs.length, "an epoch was given out twice");
}
