import { setTimeout as pauseMs } from "node:timers/promises";
import { openBrowser } from "../../test/servers/chromium.ts";
import { type PostgresServer, startPostgres } from "../../test/servers/postgres.ts";
import { askInTurn, type Question } from "../ask-in-turn.ts";
import { fillDeadLetters } from "../dead-letters.ts";
import { atLeast, atMost, type Figure, measured, type Scenario, type ScenarioOptions } from "../figure.ts";
import { fillManaged } from "../managed-outbox.ts";
import { measureParts } from "../measure-parts.ts";
import { compileRelay, prepareDatabase, startRelay } from "../relay-run.ts";
import { startApi } from "../service-api.ts";

const ROWS = 10_000_000;
const KEYS = 20_000;
const LETTERS = 100_000;
const SAMPLES = 200;
const SETTINGS = [
  "fsync=on",
  "shared_preload_libraries=pg_stat_statements",
  "shared_buffers=512MB",
  "max_wal_size=4GB",
];
const ROUNDS = 4;
const ALONE_MS = 5_000;
const ASKED_MS = 15_000;
const REQUESTS_PER_SECOND = 5;
const P95_MAX_MS = 100;
const THROUGHPUT_MIN = 95;
const FIRST_LOAD_MAX_MS = 1_000;

/**
 * What people wait for who look, and what the delivery feels of them. Once with the API in a process beside the one that
 * drains, as with several instances, and once in the same, where each answer waits for its turn between batches.
 */
export const consoleScenario: Scenario = async (options) => {
  const flags = SETTINGS.flatMap((setting) => ["-c", setting]);
  await using postgres = await startPostgres({ version: 18, onDisk: true, flags });
  await compileRelay();
  await prepareDatabase(postgres);
  await postgres.query(IDLE_TABLE);
  const rows = Math.round(ROWS * options.scale);
  options.say(`writing ${rows} events`);
  await fillManaged(postgres, { rows, payloadBytes: 200, keys: Math.max(1, Math.round(KEYS * options.scale)) });
  const stage = { ...options, postgres, rows };
  return await measureParts(options, {
    "beside the drain": () => beside(stage),
    "in one process": () => within(stage),
  });
};

interface Stage extends ScenarioOptions {
  readonly postgres: PostgresServer;
  readonly rows: number;
}

/** For a service that has nothing to deliver. */
const IDLE_TABLE = `create schema idle; create table idle.outbox (id uuid primary key default gen_random_uuid(), aggregate_id text,
  event_type text not null, payload jsonb not null, created_at timestamptz not null default now(), published_at timestamptz)`;

async function beside(stage: Stage): Promise<Figure[]> {
  const { postgres, scale } = stage;
  const letters = Math.round(LETTERS * scale);
  const relay = await startRelay(postgres, { kind: "managed", until: "told to stop" }, () =>
    fillDeadLetters(postgres, letters),
  );
  try {
    await using api = await startApi(postgres.url, { OUTBOX_SCHEMAS: "idle" });
    const { asked, alone, times } = await inTurn(stage, api.address);
    return [
      ...[...times].flatMap(([name, all]) => percentiles(name, all, P95_MAX_MS)),
      measured("drain alone", alone, "events/s"),
      measured("drain while asked", asked, "events/s"),
      atLeast("drain while asked / alone", (asked / alone) * 100, "%", THROUGHPUT_MIN),
      ...(await firstLoad(api.address, stage)),
    ];
  } finally {
    relay.stop();
    await relay.result;
  }
}

async function within(stage: Stage): Promise<Figure[]> {
  await using api = await startApi(stage.postgres.url, { OUTBOX_MANAGED: "public.outbox" });
  const { asked, alone, times } = await inTurn(stage, api.address);
  return [
    ...[...times].flatMap(([name, all]) => percentiles(name, all, null)),
    measured("drain while asked / alone", (asked / alone) * 100, "%"),
  ];
}

/** The drain with and without questions, in turn, because the machine's mood changes. */
async function inTurn({ postgres, rows, say, scale }: Stage, address: string) {
  const questions = await questionsFor(postgres);
  const times = new Map<string, number[]>();
  const rates = { alone: [] as number[], asked: [] as number[] };
  const share = Math.min(1, Math.max(0.1, scale));
  // The first of each is not counted: plans, caches and code are still cold.
  await askInTurn(address, questions, {
    forMs: (questions.length * 1_000) / REQUESTS_PER_SECOND,
    perSecond: REQUESTS_PER_SECOND,
  });
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const way of round % 2 === 0 ? (["alone", "asked"] as const) : (["asked", "alone"] as const)) {
      const before = await published(postgres);
      const startedMs = performance.now();
      if (way === "alone") await pauseMs(ALONE_MS * share);
      else {
        const asked = await askInTurn(address, questions, { forMs: ASKED_MS * share, perSecond: REQUESTS_PER_SECOND });
        for (const [name, all] of asked) times.set(name, [...(times.get(name) ?? []), ...all]);
      }
      const rate = ((await published(postgres)) - before) / ((performance.now() - startedMs) / 1_000);
      rates[way].push(rate);
      say(`  ${way}: ${Math.round(rate)} events/s`);
    }
  }
  if ((await published(postgres)) >= rows) say("  the drain was over before the last round: take more rows");
  return { times, alone: mean(rates.alone), asked: mean(rates.asked) };
}

/** Values from all over the table, so that no cache answers for long. */
async function questionsFor(postgres: PostgresServer): Promise<readonly Question[]> {
  const { rows } = await postgres.query<{ id: string; key: string; corr: string }>(
    `select event_id as id, event_key as key, correlation_id as corr
     from (select * from public.outbox tablesample bernoulli (0.1)) s order by random() limit ${SAMPLES}`,
  );
  const { rows: letters } = await postgres.query<{ id: string }>(
    `select original_event_id as id from outbox_relay.failed_events limit ${SAMPLES}`,
  );
  const any = <Item>(items: readonly Item[]) => items[Math.floor(Math.random() * items.length)]!;
  const search = (words: () => string) => () => `/api/v1/events?q=${encodeURIComponent(words())}`;
  return [
    { name: "events, newest", path: () => "/api/v1/events" },
    { name: "events by id", path: search(() => `id:${any(rows).id}`) },
    { name: "events by key", path: search(() => `key:${any(rows).key}`) },
    { name: "events by correlation", path: search(() => `corr:${any(rows).corr}`) },
    { name: "events by a bare word", path: search(() => any(rows).id) },
    { name: "events, dead", path: search(() => "state:dead") },
    { name: "event", path: () => `/api/v1/events/${any(rows).id}` },
    { name: "dead letters", path: () => "/api/v1/dead-letters" },
    { name: "dead letters by error", path: () => "/api/v1/dead-letters/groups" },
    { name: "dead letter", path: () => `/api/v1/dead-letters/${any(letters).id}` },
    { name: "parked keys", path: () => "/api/v1/keys?kind=parked" },
    { name: "hot keys", path: () => "/api/v1/keys?kind=hot" },
  ];
}

async function published(postgres: PostgresServer): Promise<number> {
  const { rows } = await postgres.query<{ sum: string }>(
    "select coalesce(sum(published_total), 0) as sum from outbox_relay.lanes where pipeline like 'public.outbox->%' and owner is not null",
  );
  return Number(rows[0]?.sum);
}

function percentiles(name: string, times: readonly number[], goalMs: number | null): Figure[] {
  const sorted = [...times].sort((left, right) => left - right);
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
  const [p50, p95] = [`${name}, p50`, `${name}, p95`];
  if (goalMs === null) return [measured(p50, at(0.5), "ms"), measured(p95, at(0.95), "ms")];
  return [measured(p50, at(0.5), "ms"), atMost(p95, at(0.95), "ms", goalMs)];
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** The whole page with its scripts and first data in a fresh browser; nothing where no page is served. */
async function firstLoad(address: string, { say }: ScenarioOptions): Promise<Figure[]> {
  const page = await fetch(address);
  if (!page.ok || !/<script/.test(await page.text())) {
    say("  no console is served on /: its first load was not measured");
    return [];
  }
  const browser = await openBrowser();
  try {
    const tab = await browser.newPage();
    await tab.goto("about:blank");
    const startedMs = performance.now();
    await tab.goto(address, { waitUntil: "networkidle", timeout: 30_000 }).catch(() => {});
    const loadedMs = await tab.evaluate<number>("performance.getEntriesByType('navigation')[0].loadEventEnd");
    say(`  the page was quiet after ${Math.round(performance.now() - startedMs)} ms`);
    return [atMost("first load of the console", loadedMs, "ms", FIRST_LOAD_MAX_MS)];
  } finally {
    await browser.close();
  }
}
