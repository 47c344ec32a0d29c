import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";
import pg from "pg";
import { makeHostile } from "../../../test/servers/hostile-defaults.ts";
import { type PostgresServer, startPostgres } from "../../../test/servers/postgres.ts";
import { relayRows } from "../../../test/servers/relay-rows.ts";
import type { ColumnNames } from "../../postgres/column-names.ts";
import { grantsFor } from "../../postgres/grants.ts";
import { quoteIdentifier, quoteTable, type TableName } from "../../postgres/identifiers.ts";
import { migrateUp } from "../../postgres/migrations/migrate.ts";
import { openDatabase } from "../../postgres/pool.ts";
import { relayTables } from "../../postgres/relay-tables.ts";
import { applicableCases } from "../../testing/contracts/contract-case.ts";
import { membershipContract } from "../../testing/contracts/membership-contract.ts";
import { queueStoreContract } from "../../testing/contracts/queue-store-contract.ts";
import type { NewEvent, StoreCapabilities, StoreHarness, StoreSubject } from "../../testing/contracts/store-subject.ts";
import { postgresSource } from "./postgres-source.ts";

/** A table as some team has it, and how an application and an operator would speak to it. */
interface Flavour {
  readonly title: string;
  readonly capabilities: Partial<StoreCapabilities>;
  readonly table: string;
  readonly create: string;
  readonly columns?: ColumnNames;
  /** Columns in the order id, type, key, payload, then headers and correlation id where there are any. */
  readonly insert: readonly string[];
  readonly id: string;
  readonly pending: string;
  readonly delivered: string;
  readonly mark: string;
  readonly reset?: string;
}

const flagTable: Flavour = {
  title: "a flag table",
  capabilities: { payloads: "json" },
  table: "outbox",
  create: `(id uuid primary key, aggregate_id text, aggregate_type varchar(100), event_type varchar(100) not null,
      payload jsonb not null, created_at timestamptz not null default now(), published_at timestamptz,
      published boolean not null default false);
    create index on $T (created_at) where published = false`,
  insert: ["id", "event_type", "aggregate_id", "payload"],
  id: "id",
  pending: "not published",
  delivered: "published and published_at is not null",
  mark: "published = true, published_at = now()",
};

const sequenceTable: Flavour = {
  title: "a table with a sequence and text",
  capabilities: { payloads: "text", headers: true },
  table: "outbox_events",
  create: `(id uuid primary key, seq bigint generated always as identity, type text, key varchar(20000), body text,
      metadata json, correlation_id varchar(50), created_at timestamp default now(), processed_at timestamp)`,
  insert: ["id", "type", "key", "body", "metadata", "correlation_id"],
  id: "id",
  pending: "processed_at is null",
  delivered: "processed_at is not null",
  mark: "processed_at = now()",
};

const workerTable: Flavour = {
  title: "a worker's table",
  capabilities: { payloads: "bytes", headers: true, ownStatus: true },
  table: "outbox_events",
  create: `(event_id uuid primary key, event_name text not null, stream_id text, data bytea, headers jsonb,
      correlation_id text, status text not null default 'Pending', attempts int not null default 0,
      next_attempt_at timestamptz default now(), last_error varchar(10), occurred_at timestamptz default now(),
      dispatched_at timestamptz)`,
  insert: ["event_id", "event_name", "stream_id", "data", "headers", "correlation_id"],
  id: "event_id",
  pending: "status = 'Pending'",
  delivered: "status = 'Dispatched' and dispatched_at is not null",
  mark: "status = 'Dispatched', dispatched_at = now()",
  reset: "status = 'Pending', next_attempt_at = now()",
};

const hostileTable: Flavour = {
  title: "a table of hostile names",
  capabilities: { payloads: "text" },
  table: 'we"ird; drop table x; --',
  create: `("Ev""ent Id" uuid primary key, "SELECT" text, "key;" text, "pay'load" json, "când" timestamptz default now(),
      "sent?" boolean)`,
  columns: {
    id: 'Ev"ent Id',
    type: "SELECT",
    key: "key;",
    payload: "pay'load",
    createdAt: "când",
    flags: ["sent?"],
  },
  insert: ['"Ev""ent Id"', '"SELECT"', '"key;"', `"pay'load"`],
  id: '"Ev""ent Id"',
  pending: '"sent?" is not true',
  delivered: '"sent?"',
  mark: '"sent?" = true',
};

const ROLE = 'relay "role"; --';

/** The older server runs the most usual table only: the statements are the same for all. */
const FLAVOURS = { 15: [flagTable], 18: [flagTable, sequenceTable, workerTable, hostileTable] } as const;

for (const version of [15, 18] as const) {
  describe(`PostgreSQL ${version}${version === 15 ? ", H1 hostile defaults" : ""}`, () => {
    let server: PostgresServer;
    before(async () => {
      server = await startPostgres({ version });
      await server.query(`create role ${quoteIdentifier(ROLE)} login`);
      if (version === 15) await makeHostile(server, ROLE);
    });
    after(async () => await server[Symbol.asyncDispose]());
    for (const flavour of FLAVOURS[version]) {
      const harness = harnessOf(flavour, () => server);
      const cases = applicableCases([...queueStoreContract, ...membershipContract], harness);
      // json takes no text that is no JSON, jsonb none of its own form: `payloads` knows only one of the two.
      const fitting = cases.filter(
        ({ rule }) => flavour !== hostileTable || !rule.includes("any text, also an empty one"),
      );
      for (const check of fitting) test(`${flavour.title}: ${check.rule}`, () => check.run(harness));
    }
  });
}

function harnessOf(flavour: Flavour, server: () => PostgresServer): StoreHarness {
  const defaults = { durableClaims: false, ownStatus: false, headers: false, prunes: true, restart: true };
  return {
    capabilities: { ...defaults, payloads: "text", ...flavour.capabilities },
    open: () => openSubject(flavour, server()),
  };
}

async function openSubject(flavour: Flavour, server: PostgresServer): Promise<StoreSubject> {
  const admin = new pg.Pool({ connectionString: server.url, max: 1 });
  admin.on("error", () => {});
  const { name, relaySchema } = await emptyPlace(flavour, server, admin);
  const options = { url: server.databaseUrl("postgres", ROLE), relaySchema };
  const source = postgresSource({ database: options, table: name, columns: flavour.columns ?? {} });
  return subjectOf({ flavour, table: quoteTable(name), admin, source, relaySchema, restart: () => server.restart() });
}

interface Place {
  readonly name: TableName;
  readonly relaySchema: string;
}

/** Made once per server and flavour and emptied for each case: making it takes as long as a whole case. */
const places = new Map<string, Place>();

async function emptyPlace(flavour: Flavour, server: PostgresServer, admin: pg.Pool): Promise<Place> {
  const key = `${server.port} ${flavour.title}`;
  const known = places.get(key);
  if (known) {
    const { instances, pipelines, lanes, holds, failedEvents } = relayTables(known.relaySchema);
    await admin.query(
      `truncate ${[quoteTable(known.name), instances, pipelines, lanes, holds, failedEvents].join(", ")}`,
    );
    return known;
  }
  const unique = randomUUID().slice(0, 8);
  const place = { name: { schema: `app "${unique}"`, table: flavour.table }, relaySchema: `relay "${unique}"; $$ --` };
  const table = quoteTable(place.name);
  await admin.query(`create schema ${quoteIdentifier(place.name.schema)};
    create table ${table} ${flavour.create.replaceAll("$T", table)}`);
  const owner = openDatabase({ url: server.url, relaySchema: place.relaySchema });
  await migrateUp(owner);
  await owner.close();
  const { relaySchema } = place;
  await admin.query(grantsFor({ role: ROLE, relaySchema, tables: [place.name], retention: true }));
  places.set(key, place);
  return place;
}

interface SubjectParts {
  readonly flavour: Flavour;
  readonly table: string;
  readonly admin: pg.Pool;
  readonly source: ReturnType<typeof postgresSource>;
  readonly relaySchema: string;
  readonly restart: () => Promise<void>;
}

function subjectOf({ flavour, table, admin, source, relaySchema, restart }: SubjectParts): StoreSubject {
  const own = relayTables(relaySchema);
  const dead = `${flavour.id}::text in (select event_id from ${own.holds} where state = 'dead')`;
  const ids = async (condition: string) => {
    const { rows } = await admin.query<{ id: string }>(
      `select ${flavour.id}::text as id from ${table} where ${condition}`,
    );
    return rows.map(({ id }) => id);
  };
  const change = async (id: string, assignments: string) =>
    void (await admin.query(`update ${table} set ${assignments} where ${flavour.id} = $1`, [id]));
  return {
    source,
    store: (spec) => source.pipeline(spec),
    insert: async (events) => {
      for (const event of events) await insertRows(admin, flavour, table, [event]);
    },
    insertInOneTransaction: async (statements) => {
      await admin.query("begin");
      for (const events of statements) await insertRows(admin, flavour, table, events);
      await admin.query("commit");
    },
    pendingIds: () => ids(`${flavour.pending} and not ${dead}`),
    deliveredIds: () => ids(flavour.delivered),
    ...relayRows(admin, own),
    deleteRow: async (id) => void (await admin.query(`delete from ${table} where ${flavour.id} = $1`, [id])),
    markByHand: (id) => change(id, flavour.mark),
    ...(flavour.reset === undefined ? {} : { resetByHand: (id: string) => change(id, flavour.reset ?? "") }),
    restart,
    close: async () => {
      await source.close();
      await admin.end();
    },
  };
}

async function insertRows(admin: pg.Pool, flavour: Flavour, table: string, events: readonly NewEvent[]): Promise<void> {
  const width = flavour.insert.length;
  const rows = events.map(
    (_, row) => `(${flavour.insert.map((_, column) => `$${row * width + column + 1}`).join(", ")})`,
  );
  for (let start = 0; start < events.length; start += 1_000) {
    const values = events.slice(start, start + 1_000).flatMap((event) => valuesOf(event, flavour));
    const places = rows.slice(0, values.length / width).join(", ");
    const text = `insert into ${table} (${flavour.insert.join(", ")}) values ${places} on conflict do nothing`;
    await admin.query(text, values);
  }
}

function valuesOf(event: NewEvent, flavour: Flavour): unknown[] {
  const isBytes = flavour.capabilities.payloads === "bytes";
  const payload = isBytes ? event.payload : event.payload.toString();
  const values = [event.id, event.type, event.key, payload, JSON.stringify(event.headers), event.correlationId];
  return values.slice(0, flavour.insert.length);
}
