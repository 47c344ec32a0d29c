/** An outbox as one of several teams might have made it. */
export interface ServiceTable {
  readonly name: string;
  readonly ids: "uuid" | "bigint" | "text";
  readonly payload: "json" | "jsonb" | "text" | "bytea";
  /** Whether there are columns for headers and a correlation id. */
  readonly hasMore: boolean;
  readonly columns: string;
  readonly pending: string;
}

/** No two are alike; users has two tables. */
export const SERVICES: readonly ServiceTable[] = [
  {
    name: "shop.outbox",
    ids: "uuid",
    payload: "json",
    hasMore: true,
    columns: `id uuid primary key, aggregate_id text, event_type text not null, payload json, headers jsonb,
      correlation_id uuid, created_at timestamptz default clock_timestamp(), published boolean not null default false`,
    pending: "not published",
  },
  {
    name: "billing.outbox_events",
    ids: "bigint",
    payload: "jsonb",
    hasMore: false,
    columns: `id bigint generated always as identity primary key, aggregate_id bigint, event_type varchar(200) not null,
      payload jsonb not null, created_at timestamp default now(), published_at timestamptz`,
    pending: "published_at is null",
  },
  {
    name: "stock.outbox",
    ids: "text",
    payload: "text",
    hasMore: false,
    columns: `position bigint generated always as identity, id text primary key, aggregate_id text,
      event_type text not null, payload text, created_at timestamptz default now(), processed_at timestamptz`,
    pending: "processed_at is null",
  },
  {
    name: "mail.outbox",
    ids: "uuid",
    payload: "bytea",
    hasMore: true,
    columns: `id uuid primary key, aggregate_id int, event_type text not null, payload bytea, headers json,
      correlation_id text, created_at timestamptz default clock_timestamp(), published boolean not null default false,
      delivered_at timestamptz`,
    pending: "not published or delivered_at is null",
  },
  {
    name: "users.outbox",
    ids: "bigint",
    payload: "json",
    hasMore: false,
    columns: `id bigserial primary key, aggregate_id text, event_type text not null, payload json,
      created_at timestamptz default clock_timestamp(), published boolean default false, published_at timestamptz`,
    pending: "published is not true or published_at is null",
  },
  {
    name: "users.outbox_events",
    ids: "text",
    payload: "jsonb",
    hasMore: true,
    columns: `id varchar(100) primary key, aggregate_id text, event_type text not null, payload jsonb, headers jsonb,
      correlation_id text, created_at timestamptz default clock_timestamp(), processed_at timestamptz`,
    pending: "processed_at is null",
  },
];

/** Whatever a careless reader would change: large numbers, white space, the order and the number of equal keys. */
export const JSON_TEXTS: readonly string[] = [
  '{"plain": true}',
  '{"id": 9007199254740993, "exact": 123456789012345678901234567890.12345678901234567890}',
  '  { "b" : 1,\n\t"a":2 , "a" : 3 }  ',
  '{"text": "grün \\"quoted\\" \\u00e9 😀 日本語 \\\\ \\/ \\t \'single\'"}',
  "1e400",
  "-0.0",
  "null",
  '"only text"',
  "[]",
  '{"nul": "\\u0000"}',
  // Longer than what is read together with its row.
  JSON.stringify({ long: "ä".repeat(50_000) }),
];

export const TEXTS: readonly string[] = [
  ...JSON_TEXTS,
  "",
  " before and behind ",
  "no JSON at all: \"'\r\n\t;--",
  "\u{10ffff} é é",
];

export const BYTES: readonly Buffer[] = [
  Buffer.from(Uint8Array.from({ length: 256 }, (_, byte) => byte)),
  Buffer.alloc(0),
  Buffer.from([0xff, 0xfe, 0xc3, 0x28, 0x00]),
  Buffer.from(JSON_TEXTS[2] ?? ""),
  Buffer.alloc(100_000, 0xab),
];
