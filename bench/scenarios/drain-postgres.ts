import { type PostgresServer, startPostgres } from "../../test/servers/postgres.ts";
import { atLeast, atMost, type Figure, measured, type Scenario, type ScenarioOptions } from "../figure.ts";
import { measureParts } from "../measure-parts.ts";
import { type FillOptions, fillTable, type TableKind } from "../outbox-tables.ts";
import { rawPostgres } from "../raw-postgres.ts";
import { compileRelay, prepareDatabase, runRelay } from "../relay-run.ts";

const ROWS = 200_000;
const KEYS = 20_000;
const GOALS: Readonly<Record<TableKind, number>> = { flag: 75, openoutbox: 60 };

interface Stage extends ScenarioOptions {
  readonly postgres: PostgresServer;
}

/** How fast the relay empties a table into a publisher that acknowledges at once, against the raw limits of the run. */
export const drainPostgres: Scenario = async (options) => {
  await using postgres = await startPostgres({
    version: 18,
    onDisk: true,
    flags: [
      "-c",
      "fsync=on",
      "-c",
      "shared_preload_libraries=pg_stat_statements",
      "-c",
      "shared_buffers=512MB",
      "-c",
      "max_wal_size=4GB",
    ],
  });
  await compileRelay();
  await prepareDatabase(postgres);
  const stage = { ...options, postgres };
  return await measureParts(options, {
    "flag 200 B": () => drain(stage, "flag", 200),
    "flag 1 KB": () => drain(stage, "flag", 1_000),
    "openoutbox 200 B": () => drain(stage, "openoutbox", 200),
    "openoutbox 1 KB": () => drain(stage, "openoutbox", 1_000),
    "parked keys": () => parkedKeys(stage),
    "bulk insert": () => bulkInsert(stage),
    idle: () => idle(stage),
    memory: () => memory(stage),
  });
};

const filling = (stage: Stage, payloadBytes: number, rows = ROWS): FillOptions => ({
  rows: Math.round(rows * stage.scale),
  payloadBytes,
  keys: Math.max(1, Math.round(KEYS * stage.scale)),
});

/** Raw and relay in turn, twice, because the machine's mood changes; the better of each. */
async function drain(stage: Stage, kind: TableKind, payloadBytes: number): Promise<Figure[]> {
  const fill = filling(stage, payloadBytes);
  const raw: { readMs: number; markMs: number }[] = [];
  const relay: number[] = [];
  let rssMb = 0;
  for (let round = 0; round < 2; round += 1) {
    await fillTable(stage.postgres, kind, fill);
    raw.push(await rawPostgres(stage.postgres.url, kind));
    await fillTable(stage.postgres, kind, fill);
    const result = await runRelay(stage.postgres, { kind, until: "drained" });
    requireAll(result.delivered, fill.rows);
    relay.push(result.ms);
    rssMb = Math.max(rssMb, result.rssMb);
    stage.say(`  raw ${JSON.stringify(raw.at(-1))}  relay ${Math.round(result.ms)} ms`);
  }
  const rawMs = Math.min(...raw.map(({ readMs, markMs }) => readMs + markMs));
  const relayMs = Math.min(...relay);
  const per = (ms: number) => (fill.rows / ms) * 1_000;
  return [
    measured("raw read", per(Math.min(...raw.map(({ readMs }) => readMs))), "events/s"),
    measured("raw mark", per(Math.min(...raw.map(({ markMs }) => markMs))), "events/s"),
    measured("raw read + mark", per(rawMs), "events/s"),
    measured("relay", per(relayMs), "events/s"),
    atLeast("relay / raw", (rawMs / relayMs) * 100, "%", GOALS[kind]),
    measured("peak RSS", rssMb, "MB"),
  ];
}

/** A thousand keys whose heads are dead, each with followers that every run has to leave out. */
async function parkedKeys(stage: Stage): Promise<Figure[]> {
  const fill = filling(stage, 200);
  const times: Record<"without" | "with", number[]> = { without: [], with: [] };
  for (let round = 0; round < 2; round += 1) {
    for (const variant of ["without", "with"] as const) {
      await fillTable(stage.postgres, "flag", fill);
      const parkedKeys = variant === "with" ? Math.min(1_000, fill.keys / 2) : 0;
      const result = await runRelay(stage.postgres, { kind: "flag", until: "drained", parkedKeys });
      times[variant].push(result.ms / result.delivered);
    }
  }
  const ratio = (Math.min(...times.without) / Math.min(...times.with)) * 100;
  return [atLeast("speed with 1,000 parked keys / without", ratio, "%", 90)];
}

/** One transaction with a million rows that all share one created_at. */
async function bulkInsert(stage: Stage): Promise<Figure[]> {
  const fill = filling(stage, 200, 1_000_000);
  await fillTable(stage.postgres, "flag", fill);
  const small = await runRelay(stage.postgres, { kind: "flag", until: "drained" });
  await fillTable(stage.postgres, "flag", { ...fill, inOneTransaction: true });
  const bulk = await runRelay(stage.postgres, { kind: "flag", until: "drained" });
  requireAll(bulk.delivered, fill.rows);
  const ratio = small.ms / small.delivered / (bulk.ms / bulk.delivered);
  return [
    measured("many transactions", (small.delivered / small.ms) * 1_000, "events/s"),
    measured("one transaction", (bulk.delivered / bulk.ms) * 1_000, "events/s"),
    atLeast("one / many", ratio * 100, "%", 95),
  ];
}

async function idle(stage: Stage): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const kind of ["flag", "openoutbox"] as const) {
    await fillTable(stage.postgres, kind, { rows: 1, payloadBytes: 200, keys: 1 });
    const result = await runRelay(stage.postgres, { kind, until: "idle for 20 s" });
    const perS = (count: number | undefined) => (count ?? Number.NaN) / (result.ms / 1_000);
    figures.push(atMost(`${kind}, statements of the source`, perS(result.statements?.source), "per second", 2));
    figures.push(measured(`${kind}, with the heartbeat of the process`, perS(result.statements?.all), "per second"));
    figures.push(atMost(`${kind}, CPU of the relay`, result.cpuPercent, "% of a core", 1));
  }
  return figures;
}

async function memory(stage: Stage): Promise<Figure[]> {
  const fill = filling(stage, 200, 5_000_000);
  stage.say(`  writing ${fill.rows} rows`);
  await fillTable(stage.postgres, "flag", { ...fill, keys: KEYS });
  const result = await runRelay(stage.postgres, { kind: "flag", until: "drained" });
  requireAll(result.delivered, fill.rows);
  return [
    measured("backlog", fill.rows, "events"),
    measured("relay", (result.delivered / result.ms) * 1_000, "events/s"),
    atMost("peak RSS", result.rssMb, "MB", 256),
  ];
}

function requireAll(delivered: number, rows: number): void {
  if (delivered !== rows) throw new Error(`the relay delivered ${delivered} of ${rows} events: no figure can be given`);
}
