import pg from "pg";
import { type DeadLetter, listDeadLetters } from "../operations/dead-letter-list.ts";
import { replay } from "../operations/replay.ts";
import { type Database, openDatabase } from "../postgres/pool.ts";
import { SHOP_TABLES } from "./demo-shop.ts";

/** What the database says of one source. */
export interface SourceFigures {
  readonly source: string;
  /** Events that the relay has yet to deliver. */
  readonly waiting: number;
  /** Events behind a dead letter of their key. */
  readonly parked: number;
  readonly dead: number;
  /** Age of the oldest waiting event; 0 when none waits. */
  readonly oldestMs: number;
  readonly delivered: number;
}

/** An event that failed and is tried again. */
export interface Retrying {
  readonly id: string;
  readonly pipeline: string;
  readonly key: string | null;
  readonly attempts: number;
  readonly reason: string;
}

const SHOWN_MAX = 20;
const QUERY_MS = 2_000;

const figuresOf = ({ schema, table, unpublished }: (typeof SHOP_TABLES)[number]) => `
select '${schema}.${table}' as source,
  count(*) filter (where not is_dead and not is_parked) as waiting,
  count(*) filter (where not is_dead and is_parked) as parked,
  count(*) filter (where is_dead) as dead,
  coalesce(extract(epoch from clock_timestamp() - min(created_at) filter (where not is_dead and not is_parked)), 0) * 1000 as "oldestMs",
  coalesce((select total_events_published from outbox_relay.relay_state
    where schema_name = '${schema}' and table_name = '${table}'), 0) as delivered
from (select created_at,
    exists (select from dead d where d.event_id = t.id::text) as is_dead,
    exists (select from dead d where d.parks and d.event_key = t.aggregate_id) as is_parked
  from ${schema}.${table} t
  where ${unpublished}) waiting`;

const FIGURES = SHOP_TABLES.map(
  (shop) => `(with dead as materialized (
  select event_id, event_key, parks from outbox_relay.holds
  where state = 'dead' and pipeline like '${shop.schema}.${shop.table}->%')
${figuresOf(shop)})`,
).join("\nunion all\n");

const RETRYING = `
select event_id as id, pipeline, event_key as key, attempts, reason
from outbox_relay.holds where state <> 'dead' order by last_failed_at desc limit ${SHOWN_MAX}`;

const LANES = `
select i.name, count(*) as lanes from outbox_relay.instances i join outbox_relay.lanes l on l.owner = i.id
where i.alive_until > clock_timestamp() group by i.name`;

/** Reads what the tables of the shop and of the relay say, with the rights of their owner. */
export class ShopFigures {
  readonly #pool: pg.Pool;
  readonly #database: Database;

  constructor(url: string) {
    this.#database = openDatabase({ url, applicationName: "outbox-relay dev" });
    this.#pool = new pg.Pool({
      connectionString: url,
      max: 2,
      query_timeout: QUERY_MS,
      connectionTimeoutMillis: QUERY_MS,
    });
    this.#pool.on("error", () => {});
  }

  async sources(): Promise<readonly SourceFigures[]> {
    const { rows } = await this.#pool.query<Record<string, string>>(FIGURES);
    return rows.map(({ source, ...figures }) => ({ source: source!, ...numbers(figures) }) as unknown as SourceFigures);
  }

  /** The last ones that nobody has dealt with. */
  async deadLetters(): Promise<readonly DeadLetter[]> {
    return (await listDeadLetters(this.#database, {}, { limit: SHOWN_MAX })).deadLetters;
  }

  async retrying(): Promise<readonly Retrying[]> {
    return (await this.#pool.query<Retrying>(RETRYING)).rows;
  }

  /** How many lanes each living relay owns. */
  async lanes(): Promise<ReadonlyMap<string, number>> {
    const { rows } = await this.#pool.query<{ name: string; lanes: string }>(LANES);
    return new Map(rows.map(({ name, lanes }) => [name, Number(lanes)]));
  }

  /** Those of the ids that wait in their table. */
  async stillThere(source: string, ids: readonly string[]): Promise<ReadonlySet<string>> {
    const shop = SHOP_TABLES.find(({ schema, table }) => `${schema}.${table}` === source);
    if (shop === undefined) return new Set(ids);
    const { rows } = await this.#pool.query<{ id: string }>(
      `select id::text from ${source} where id::text = any($1) and ${shop.unpublished}`,
      [ids],
    );
    return new Set(rows.map(({ id }) => id));
  }

  /** False when it is no dead letter any more. */
  async replay(letterId: string): Promise<boolean> {
    const request = { choice: { ids: [letterId] }, all: false, author: { by: "the page of outbox-relay dev" } };
    const { done } = await replay({ database: this.#database, columns: {} }, request);
    return done === 1;
  }

  async close(): Promise<void> {
    await Promise.all([this.#pool.end(), this.#database.close()]);
  }
}

function numbers(texts: Readonly<Record<string, string>>): Record<string, number> {
  return Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, Number(text)]));
}
