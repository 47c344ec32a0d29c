import type { PostgresServer } from "../test/servers/postgres.ts";

export type TableKind = "flag" | "openoutbox";

const CREATE: Readonly<Record<TableKind, string>> = {
  flag: `
    drop table if exists public.outbox;
    create table public.outbox (
      id uuid primary key default gen_random_uuid(),
      aggregate_id uuid not null,
      aggregate_type varchar(100) not null,
      event_type varchar(100) not null,
      payload jsonb not null,
      correlation_id uuid not null,
      created_at timestamptz not null default now(),
      published_at timestamptz,
      published boolean not null default false
    );
    create index on public.outbox (created_at) where published = false;`,
  openoutbox: `
    drop table if exists public.openoutbox_events;
    create table public.openoutbox_events (
      event_id uuid primary key default gen_random_uuid(),
      event_type text not null,
      partition_key text,
      payload bytea not null,
      headers jsonb not null default '{}',
      status text not null default 'PENDING' check (status in ('PENDING', 'DELIVERING', 'DELIVERED', 'DEAD')),
      attempts int not null default 0,
      last_error text,
      available_at timestamptz not null default now(),
      locked_by text,
      locked_at timestamptz,
      delivered_at timestamptz,
      created_at timestamptz not null default now(),
      updated_at timestamptz not null default now()
    );
    create index on public.openoutbox_events (available_at, created_at) where status = 'PENDING';
    create index on public.openoutbox_events (locked_at) where status = 'DELIVERING';`,
};

export interface FillOptions {
  readonly rows: number;
  readonly payloadBytes: number;
  readonly keys: number;
  /** All rows in one transaction share one created_at. */
  readonly inOneTransaction?: boolean;
}

/** A fresh table with pending rows, vacuumed, so that each measurement starts from the same state. */
export async function fillTable(postgres: PostgresServer, kind: TableKind, options: FillOptions): Promise<void> {
  await postgres.query(CREATE[kind]);
  const stepRows = options.inOneTransaction ? options.rows : 100;
  const stepsPerCall = Math.max(1, Math.floor(100_000 / stepRows));
  for (let done = 0; done < options.rows; done += stepRows * stepsPerCall) {
    const until = Math.min(options.rows, done + stepRows * stepsPerCall);
    await postgres.query(insertSql(kind, done, until, stepRows, options));
  }
  await postgres.query(`vacuum (analyze) public.${kind === "flag" ? "outbox" : "openoutbox_events"}`);
  await postgres.query("checkpoint");
}

/** Rows in groups that share a time, as the events of one transaction do. */
function insertSql(kind: TableKind, from: number, until: number, groupRows: number, options: FillOptions): string {
  const { keys, payloadBytes } = options;
  const at = `now() - interval '1 hour' + (i / ${groupRows}) * interval '1 millisecond'`;
  const filler = `repeat('x', ${Math.max(1, payloadBytes - 24)})`;
  const series = `generate_series(${from}, ${until - 1}) i order by i`;
  if (kind === "flag") {
    return `insert into public.outbox (aggregate_id, aggregate_type, event_type, payload, correlation_id, created_at)
      select md5((i % ${keys})::text)::uuid, 'order', 'order.created', jsonb_build_object('n', i, 'x', ${filler}),
        md5(i::text)::uuid, ${at} from ${series}`;
  }
  return `insert into public.openoutbox_events (event_type, partition_key, payload, available_at, created_at)
    select 'order.created', md5((i % ${keys})::text), convert_to('{"n":' || i || ',"x":"' || ${filler} || '"}', 'UTF8'),
      ${at}, ${at} from ${series}`;
}
