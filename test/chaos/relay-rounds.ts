import { SeededRandom } from "../../src/testing/simulator/seeded-random.ts";
import { judge, type Verdict } from "../e2e/checker.ts";
import { BILLING, ORDERS } from "../e2e/outbox-tables.ts";
import { createFleet, type RelayFleet, type RelayProcess } from "../e2e/relay-fleet.ts";
import { openStage, type Stage } from "../e2e/stage.ts";
import { countPending, createAggregates, readLedger, readOutbox, startWriters } from "../e2e/writer.ts";
import { type PostgresServer, startPostgres } from "../servers/postgres.ts";
import type { PostgresVersion } from "../servers/postgres-binaries.ts";
import { type Sink, startSink } from "../servers/sink.ts";
import { until } from "../servers/until.ts";

export type Blow = "kill" | "pause" | "terminate";

export interface RoundsOptions {
  /** No round begins after that. */
  readonly seconds: number;
  /** Fewer rounds than there is time for. */
  readonly roundsMax?: number;
  readonly seed: number;
  readonly version: PostgresVersion;
  readonly blows: readonly Blow[];
  /** Default: short, so that what is killed or paused is soon replaced. */
  readonly leaseMs?: number;
  /** Told what happens, line by line. */
  readonly log: (line: string) => void;
}

export interface RoundsReport {
  readonly verdict: Verdict;
  readonly blows: Readonly<Record<Blow, number>>;
  /** Connections that the sink closed after an event took effect and before its answer. */
  readonly lostAnswers: number;
  /** Instances that lost their lease without being paused: the machine was too slow for them. */
  readonly lostByThemselves: number;
  /** Events that may arrive twice: what the struck instances can have had in flight. */
  readonly duplicatesMax: number;
  readonly takeOvers: number;
  /** What the relays counted, each event once: a late result of an instance that was taken for dead counts nothing. */
  readonly publishedTotal: number;
}

const TABLES = [ORDERS, BILLING];
const RELAYS = 3;
const KEYS = 40;
const LEASE_MS = 2_500;
/** Small, so that a bound made of them says something. */
const IN_FLIGHT_MAX = 12;
/** New arrivals between two blows: the traffic flows again before the next one. */
const ARRIVALS_BETWEEN = 60;
const BATCH_SIZE = 4;
const DRAIN_MS = 120_000;

/** Three relay processes on one database while writers insert and blows fall, one after the other. */
export async function runRounds(options: RoundsOptions): Promise<RoundsReport> {
  await using started = new AsyncDisposableStack();
  const postgres: PostgresServer = started.use(await startPostgres({ version: options.version }));
  const sink = started.use(await startSink());
  const stage = started.use(await openStage(postgres, { database: "shop", tables: TABLES }));
  await createAggregates(stage.pool, KEYS);
  const fleet = started.use(newFleet(stage, sink, options.leaseMs ?? LEASE_MS));
  for (let n = 1; n <= RELAYS; n += 1) await fleet.start(`relay-${n}`);
  const writers = startWriters({ url: stage.url, tables: TABLES, keys: KEYS, seed: options.seed });
  const rounds = new Rounds(options, fleet, sink);
  try {
    await sink.waitFor(ARRIVALS_BETWEEN);
    await rounds.run();
  } finally {
    await writers.stop();
  }
  const isDrained = async () => (await countPending(stage.pool, TABLES)) === 0;
  await until("all events are marked", isDrained, DRAIN_MS).catch(async (cause) => {
    throw new Error(`what is left:\n${await progressOf(stage)}\n${lastWords(fleet)}`, { cause });
  });
  // What was acknowledged twice would still be on its way: in good order, nothing comes after the end.
  await Promise.all(fleet.processes.filter(({ isRunning }) => isRunning).map((relay) => relay.terminate()));
  const [ledger, arrivals, outbox] = [
    await readLedger(stage.pool),
    await sink.arrivals(),
    await readOutbox(stage.pool, TABLES),
  ];
  const [state] = await stage.sql<{ total: string }>(
    "select sum(total_events_published) as total from outbox_relay.relay_state",
  );
  return rounds.report(judge(ledger, arrivals, outbox), Number(state?.total));
}

function newFleet(stage: Stage, sink: Sink, leaseMs: number): RelayFleet {
  return createFleet({
    databaseUrl: stage.relayUrl,
    sinkPort: sink.port,
    tables: TABLES,
    lanes: 6,
    leaseMs,
    limits: { batchSize: BATCH_SIZE, inFlightEventsMax: IN_FLIGHT_MAX, pageRows: 12 },
    // The sink refuses the same keys again and again: patience, so that none of them dies of it.
    retry: { initialMs: 50, maxMs: 400, attemptsMax: 1_000 },
    timing: { leaseMarginMs: 0.2 * leaseMs, publishTimeoutMs: 0.6 * leaseMs, balanceMs: 250, pollIntervalMs: 100 },
  });
}

class Rounds {
  readonly #options: RoundsOptions;
  readonly #fleet: RelayFleet;
  readonly #sink: Sink;
  readonly #random: SeededRandom;
  readonly #blows: Record<Blow, number> = { kill: 0, pause: 0, terminate: 0 };
  #nextName = RELAYS + 1;
  #lostAnswers = 0;

  constructor(options: RoundsOptions, fleet: RelayFleet, sink: Sink) {
    this.#options = options;
    this.#fleet = fleet;
    this.#sink = sink;
    this.#random = new SeededRandom(options.seed, 1);
  }

  async run(): Promise<void> {
    const endMs = performance.now() + this.#options.seconds * 1_000;
    const { roundsMax = Number.POSITIVE_INFINITY } = this.#options;
    for (let round = 0; round < roundsMax && performance.now() < endMs; round += 1) {
      const relay = this.#random.pick(this.#fleet.processes.filter(({ isRunning }) => isRunning));
      const blow = this.#random.pick(this.#options.blows);
      this.#options.log(`${blow} ${relay.name}`);
      this.#blows[blow] += 1;
      await this.#troubleTheSink();
      await this.#strike(relay, blow);
      const { length } = await this.#sink.arrivals();
      await this.#sink.waitFor(length + this.#random.int(1, ARRIVALS_BETWEEN));
    }
  }

  /** Failing keys, so that the blows also meet holds; lost answers only where a duplicate is allowed at all. */
  async #troubleTheSink(): Promise<void> {
    const key = () => `key-${this.#random.int(1, KEYS)}`;
    for (let keys = 3; keys > 0; keys -= 1) {
      await this.#sink.order({ kind: "retry", key: key(), count: this.#random.int(1, 3) });
    }
    if (!this.#options.blows.includes("kill")) return;
    await this.#sink.order({ kind: "drop-after-effect", key: key(), count: 1 });
    this.#lostAnswers += 1;
  }

  async #strike(relay: RelayProcess, blow: Blow): Promise<void> {
    if (blow === "pause") return await this.#pausePastTheLease(relay);
    await (blow === "kill" ? relay.kill() : relay.terminate());
    await this.#fleet.start(`relay-${this.#nextName++}`);
  }

  /** Resumed only when the others have taken it for dead, so that a zombie with events in its hands comes back. */
  async #pausePastTheLease(relay: RelayProcess): Promise<void> {
    await relay.waitFor("InstanceJoined");
    const joined = relay.told.findLast(({ name }) => name === "InstanceJoined");
    await relay.pause();
    const isReaped = () => this.#fleet.told("InstanceReaped").some(({ instance }) => instance === joined?.instance);
    await until(`${relay.name} is taken for dead`, isReaped);
    relay.resume();
    await relay.waitFor("InstanceLost", ({ instance }) => instance === joined?.instance);
  }

  report(verdict: Verdict, publishedTotal: number): RoundsReport {
    const lostByThemselves = this.#fleet.told("InstanceLost").length - this.#blows.pause;
    const struck = this.#blows.kill + this.#blows.pause + lostByThemselves;
    return {
      verdict,
      blows: this.#blows,
      lostByThemselves,
      lostAnswers: this.#lostAnswers,
      duplicatesMax: struck * IN_FLIGHT_MAX * TABLES.length + this.#lostAnswers,
      publishedTotal,
      takeOvers: this.#fleet.told("LaneTaken").length,
    };
  }
}

/** For a run that does not come to its end: who owns what, and what is held. */
async function progressOf(stage: Stage): Promise<string> {
  const tables = ["instances", "lanes", "holds"].map(async (table) => {
    const rows = await stage.sql(`select to_jsonb(t)::text as row from outbox_relay.${table} t limit 30`);
    return rows.map((row) => `${table} ${JSON.stringify(row)}`).join("\n");
  });
  return (await Promise.all(tables)).join("\n");
}

function lastWords(fleet: RelayFleet): string {
  const running = fleet.processes.filter(({ isRunning }) => isRunning);
  return running
    .flatMap(({ name, told }) => told.slice(-12).map((event) => `${name} ${JSON.stringify(event)}`))
    .join("\n");
}
