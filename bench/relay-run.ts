import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { grantsFor } from "../src/postgres/grants.ts";
import { migrateUp } from "../src/postgres/migrations/migrate.ts";
import { openDatabase } from "../src/postgres/pool.ts";
import { missingHeapFlags } from "../src/service/heap-limits.ts";
import type { PostgresServer } from "../test/servers/postgres.ts";
import type { RelayResult, RelayRun, SourceKind } from "./relay-order.ts";

const ROLE = "relay_bench";
/** The compiled program, as it ships: stripping types at run time costs memory of its own. */
const CHILD = fileURLToPath(new URL("../dist/bench/bench/relay-child.js", import.meta.url));

export async function compileRelay(): Promise<void> {
  const project = fileURLToPath(new URL("./tsconfig.json", import.meta.url));
  const compiler = fileURLToPath(new URL("../node_modules/.bin/tsc", import.meta.url));
  await promisify(execFile)(compiler, ["-p", project]);
}

/** The relay's schema and its least-privilege role, as documented for users. */
export async function prepareDatabase(postgres: PostgresServer): Promise<void> {
  const database = openDatabase({ url: postgres.url });
  await migrateUp(database);
  await database.close();
  await postgres.query(`create role ${ROLE} login`);
  await postgres.query("create extension pg_stat_statements");
}

/** Runs the relay in a process of its own and returns what that process and the database counted. */
export async function runRelay(postgres: PostgresServer, run: RelayRun): Promise<RelayResult> {
  const { result } = await startRelay(postgres, run);
  return await result;
}

/**
 * The same without waiting for the end; `stop` is for a run until it is told to stop. `prepare` comes between what is
 * cleared before each run and the start.
 */
export async function startRelay(
  postgres: PostgresServer,
  run: RelayRun,
  prepare: () => Promise<void> = async () => {},
): Promise<{ readonly result: Promise<RelayResult>; stop(): void }> {
  const table = run.kind === "openoutbox" ? "public.openoutbox_events" : "public.outbox";
  await resetProgress(postgres, table, run.kind);
  if (run.parkedKeys) await parkKeys(postgres, run.parkedKeys);
  await prepare();
  const child = spawn(process.execPath, [...missingHeapFlags([], ""), CHILD], {
    env: { ...process.env, BENCH: JSON.stringify({ ...run, table, url: postgres.databaseUrl("postgres", ROLE) }) },
    stdio: ["pipe", "pipe", "inherit"],
  });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  const result = once(child, "close").then(([code]) => {
    if (code !== 0) throw new Error(`the relay's process ended with ${code}`);
    return JSON.parse(output) as RelayResult;
  });
  return { result, stop: () => child.stdin.end() };
}

async function resetProgress(postgres: PostgresServer, table: string, kind: SourceKind): Promise<void> {
  const [schema, name] = table.split(".") as [string, string];
  await postgres.query(
    "truncate outbox_relay.instances, outbox_relay.lanes, outbox_relay.holds, outbox_relay.pipelines, outbox_relay.failed_events, outbox_relay.parked, outbox_relay.passed cascade",
  );
  const tables = [{ schema, table: name }];
  const isLog = kind === "managed" || kind === "wal";
  const rights = isLog ? { tables: [], logs: tables, hasWal: kind === "wal" } : { tables };
  await postgres.query(grantsFor({ role: ROLE, ...rights }));
}

/** As the relay leaves it: a dead head that parks its key. */
async function parkKeys(postgres: PostgresServer, keys: number): Promise<void> {
  await postgres.query(
    `insert into outbox_relay.holds (pipeline, lane, event_id, event_key, state, parks, attempts, crashes, reason, errors,
       first_failed_at, last_failed_at)
     select 'public.outbox->out', 0, id::text, aggregate_id::text, 'dead', true, 10, 0, 'planted', '[]', now(), now()
     from (select distinct on (aggregate_id) id, aggregate_id from public.outbox order by aggregate_id, created_at) heads
     limit ${keys}`,
  );
}
