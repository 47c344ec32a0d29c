import { freePort } from "../servers/free-port.ts";
import type { PostgresServer } from "../servers/postgres.ts";
import { until } from "../servers/until.ts";
import { type Ask, apiClient, type OpenApiDocument } from "./openapi-client.ts";
import { ORDERS } from "./outbox-tables.ts";
import { type Ended, runCommand, type ServiceProcess, startService } from "./service-process.ts";
import { openStage, type Stage } from "./stage.ts";

/** An outbox whose dead letters are made as a relay would have left them, many at a time. */
export interface ReplayStage extends Stage {
  readonly env: Readonly<Record<string, string>>;
  run(): Promise<ReplayService>;
  command(...args: readonly string[]): Promise<Ended>;
  /** Dead letters with the keys that `key` makes of the number `n`; each parks its key. Followers only wait. */
  bury(many: Buried): Promise<void>;
}

/** A service with its API, every answer of which is checked against the document. */
export interface ReplayService extends ServiceProcess {
  readonly ask: Ask;
  /** Where it listens. */
  readonly origin: string;
}

export interface Buried {
  readonly count: number;
  readonly type?: string;
  /** SQL over `n`. */
  readonly key?: string;
  readonly headers?: string;
  readonly followers?: number;
  /** Of the pipelines that end like that; of all by default. */
  readonly destination?: string;
  /** SQL over `m.id`, the event's. */
  readonly reason?: string;
}

let stages = 0;

type Env = Readonly<Record<string, string>>;

export async function replayStage(
  server: PostgresServer,
  destination: string | Env,
  more: Env = {},
): Promise<ReplayStage> {
  stages += 1;
  const stage = await openStage(server, { database: `replays_${process.pid}_${stages}`, tables: [ORDERS] });
  const env = {
    DATABASE_URL: stage.relayUrl,
    OUTBOX_SCHEMAS: "orders",
    ...(typeof destination === "string" ? { OUTBOX_DESTINATION: destination } : destination),
    POLL_INTERVAL_MS: "100",
    NO_COLOR: "1",
    ...more,
  };
  return {
    ...stage,
    env,
    run: async () => {
      const port = String(await freePort());
      const running = startService(["run"], { ...env, PORT: port });
      await running.becomes("healthy");
      await until("it serves its lanes", async () => {
        return (await stage.sql("select from outbox_relay.lanes where owner is not null")).length > 0;
      });
      const document = (await running.get("/openapi.json")).json() as unknown as OpenApiDocument;
      const origin = `http://127.0.0.1:${port}`;
      return Object.assign(running, { origin, ask: apiClient(document, origin) });
    },
    command: (...args) => runCommand(args, env),
    bury: (many) => bury(stage, many),
    [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose](),
  };
}

async function bury(
  { sql }: Stage,
  { count, destination = "", followers = 0, headers = "{}", key = "'k' || n", type = "order.placed", ...many }: Buried,
) {
  const { reason = `'Answered 422: "' || m.id || '"'` } = many;
  const from = `made m, outbox_relay.pipelines p where p.name like '%${destination}'`;
  await sql(`begin;
    create temp table made on commit drop as
      select n, gen_random_uuid() as id, ${key} as key, clock_timestamp() as at from generate_series(1, ${count}) n;
    insert into orders.outbox (id, aggregate_id, event_type, payload, headers, created_at)
      select id, key, '${type}', json_build_object('key', key, 'n', n, 'step', 0), '${headers}', at from made order by n;
    insert into orders.outbox (aggregate_id, event_type, payload, created_at)
      select key, '${type}', json_build_object('key', key, 'n', n, 'step', s), at + s * interval '1 second'
      from made, generate_series(1, ${followers}) s order by n, s;
    insert into outbox_relay.holds (pipeline, lane, event_id, event_key, state, parks, attempts, reason)
      select p.name, mod(hashtextextended(coalesce(key, m.id::text) collate "C", 0) & 9223372036854775807, p.lanes),
        m.id, key, 'dead', key is not null, 1, ${reason} from ${from};
    insert into outbox_relay.failed_events (pipeline, original_event_id, source_schema, source_table, event_type, event_key,
        payload, headers, event_created_at, failure_reason, first_failed_at)
      select p.name, m.id, 'orders', 'outbox', '${type}', key, '{}', '${headers}', at, ${reason}, at
      from ${from};
    commit`);
}
