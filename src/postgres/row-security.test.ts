import assert from "node:assert/strict";
import { test } from "node:test";
import { startPostgres } from "../../test/servers/postgres.ts";
import { openAsRelay } from "../../test/servers/relay-role.ts";
import { eventTableSource } from "../sources/postgres/log-sources.ts";
import { openOutboxSource } from "../sources/postgres/openoutbox/openoutbox-source.ts";

const SPEC = { types: null, lanes: 1, attemptsMax: 3, payloadBytesMax: 1_000_000, headersMax: 10 };
const HIDDEN = ["facts", "ticks", "openoutbox_events"];
const ALL = [...HIDDEN, "open_facts"];
const LOG = "id bigint generated always as identity primary key, event_type text, aggregate_id text, payload text";
const TABLES = `
create table public.facts (${LOG}, xid xid8 default pg_current_xact_id()); create index on public.facts (xid, id);
create table public.open_facts (${LOG}, xid xid8 default pg_current_xact_id()); create index on public.open_facts (xid, id);
create table public.ticks (${LOG});
create table public.openoutbox_events (event_id uuid primary key default gen_random_uuid(), event_type text not null,
  partition_key text, payload bytea not null, headers jsonb not null default '{}', status text not null default 'PENDING',
  attempts int not null default 0, last_error text, available_at timestamptz not null default now(), locked_by text,
  locked_at timestamptz, delivered_at timestamptz, created_at timestamptz not null default now(),
  updated_at timestamptz not null default now());
${ALL.map((table) => `alter table public.${table} enable row level security;`).join("\n")}
${HIDDEN.map((table) => `create policy mine on public.${table} to relay using (event_type = 'mine');`).join("\n")}
create policy everything on public.open_facts to relay using (true);`;

test("H1 row-level security that may hide rows of a log or an Open Outbox table is reported, and only that", async () => {
  await using server = await startPostgres({ version: 15 });
  const names = ALL.map((table) => ({ schema: "public", table }));
  const database = await openAsRelay(server, { sql: TABLES, names });
  const sources = {
    facts: eventTableSource({ database, table: "public.facts" }),
    open_facts: eventTableSource({ database, table: "public.open_facts" }),
    ticks: eventTableSource({ database, table: "public.ticks", columns: { xid: null } }),
    openoutbox_events: openOutboxSource({ database, table: "public.openoutbox_events" }),
  };
  try {
    for (const [name, source] of Object.entries(sources)) {
      const store = source.pipeline({ ...SPEC, name });
      await store.prepare();
      const [warning] = (await store.warnings?.()) ?? [];
      const expected = name === "open_facts" ? undefined : "ROWS_HIDDEN";
      assert.equal(warning?.code, expected, name);
      if (expected !== undefined)
        assert.match(warning?.reason ?? "", /for the role relay \(policies: mine\): hidden rows/);
    }
  } finally {
    await database.close();
  }
});
