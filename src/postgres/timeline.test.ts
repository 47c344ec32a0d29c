import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { type ReplicatedPostgres, startReplicated } from "../../test/servers/postgres-standby.ts";
import { until } from "../../test/servers/until.ts";
import { isRelayError } from "../core/errors.ts";
import type { QueueSource } from "../ports/queue-store.ts";
import { openOutboxSource } from "../sources/postgres/openoutbox/openoutbox-source.ts";
import { postgresSource } from "../sources/postgres/postgres-source.ts";
import { migrateUp } from "./migrations/migrate.ts";
import { type Database, openDatabase } from "./pool.ts";

const ID = "00000000-0000-4000-8000-000000000001";
const SPEC = { name: "p", types: null, lanes: 1, attemptsMax: 3, payloadBytesMax: 1_000_000, headersMax: 10 };
const TABLES = `
create table public.outbox (id uuid primary key, aggregate_id text, event_type text not null, payload text,
  created_at timestamptz not null default clock_timestamp(), published boolean not null default false);
create table public.openoutbox_events (event_id uuid primary key, event_type text not null, partition_key text,
  payload bytea not null, headers jsonb not null default '{}', status text not null default 'PENDING',
  attempts int not null default 0, last_error text, available_at timestamptz not null default now(), locked_by text,
  locked_at timestamptz, delivered_at timestamptz, created_at timestamptz not null default now(),
  updated_at timestamptz not null default now());`;

const CASES: readonly {
  readonly kind: string;
  readonly source: (database: Database) => QueueSource;
  readonly insert: string;
  readonly waiting: string;
}[] = [
  {
    kind: "flag table",
    source: (database) => postgresSource({ database, table: "public.outbox" }),
    insert: `insert into public.outbox (id, aggregate_id, event_type, payload) values ('${ID}', 'a', 't', '{}')`,
    waiting: "select not published as waiting from public.outbox",
  },
  {
    kind: "Open Outbox table",
    source: (database) => openOutboxSource({ database, table: "public.openoutbox_events" }),
    insert: `insert into public.openoutbox_events (event_id, event_type, partition_key, payload)
      values ('${ID}', 't', 'a', '{}')`,
    waiting: "select status = 'PENDING' as waiting from public.openoutbox_events",
  },
];

for (const { kind, source, insert, waiting } of CASES) {
  test(`A2 B4 ${kind}: what was read before a failover marks no row, also when its id was given out again`, async () => {
    await using pair = await startReplicated({ version: 15 });
    await pair.primary.query(TABLES);
    await using opened = await openSource(pair, source);
    const { store, id } = opened;
    const [before] = await store.takeOver(id, [0]);
    assert.match(before!.grant.timeline ?? "", /^[0-9A-F]{8}$/);
    await pair.caughtUp();
    pair.pauseReplication();
    await pair.primary.query(insert);
    const run = await store.begin({ grants: [before!.grant], exceptKeys: [], exceptTypes: [] });
    assert.equal((await run.next(10, 1_000)).length, 1);
    await run.end();

    await pair.failover();
    await pair.standby.query(insert);
    const nothing = { failed: [], handedBack: [], releasedHolds: [], suspects: [] };
    const { settledBatch, grant } = before!;
    const late = { grant, previousBatch: settledBatch, batch: settledBatch + 1n, ledger: "none", ...nothing } as const;
    const refused = await until("the new primary answers", () =>
      store.settle({ ...late, delivered: [ID] }).then(
        () => assert.fail("the row of the new event was marked"),
        (error) => isRelayError(error, "FENCED"),
      ),
    );
    assert.equal(refused, true);
    assert.deepEqual((await pair.standby.query(waiting)).rows, [{ waiting: true }]);
    const [lane] = (await store.survey()).lanes;
    assert.deepEqual([lane?.owner, lane?.timeline === grant.timeline], [id, false]);

    const [after] = await store.takeOver(id, [0]);
    const again = await store.begin({ grants: [after!.grant], exceptKeys: [], exceptTypes: [] });
    assert.equal((await again.next(10, 1_000)).length, 1);
    await again.end();
  });
}

async function openSource(pair: ReplicatedPostgres, open: (database: Database) => QueueSource) {
  const database = openDatabase({ url: pair.databaseUrl() });
  await migrateUp(database);
  const source = open(database);
  const store = source.pipeline(SPEC);
  await store.prepare();
  const id = randomUUID();
  await source.membership.join({ id, name: "test", leaseMs: 600_000, pipelines: [SPEC.name] });
  return { store, id, [Symbol.asyncDispose]: () => database.close() };
}
