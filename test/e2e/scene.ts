import { randomUUID } from "node:crypto";
import type { Limits, Timing } from "../../src/core/limits.ts";
import type { TechnicalEvent, TechnicalEventName } from "../../src/ports/technical-events.ts";
import type { ColumnNames } from "../../src/postgres/column-names.ts";
import { quoteTable, type TableName } from "../../src/postgres/identifiers.ts";
import { createRelay, type Relay, type RelayOptions } from "../../src/relay/relay.ts";
import type { TableReference } from "../../src/sources/postgres/table-discovery.ts";
import type { PostgresServer } from "../servers/postgres.ts";
import { type Sink, startSink } from "../servers/sink.ts";
import { until } from "../servers/until.ts";
import type { OutboxTable } from "./outbox-tables.ts";
import { sinkPublisher } from "./sink-publisher.ts";
import { openStage, type Stage } from "./stage.ts";
import { tableSources } from "./table-sources.ts";

type Told<Name extends TechnicalEventName> = Extract<TechnicalEvent, { readonly name: Name }>;

/** A relay inside the test process, with everything it told. */
export interface LiveRelay extends AsyncDisposable {
  readonly events: readonly TechnicalEvent[];
  told<Name extends TechnicalEventName>(name: Name, fits?: (event: Told<Name>) => boolean): Told<Name>[];
  /** Waits for an event, told before or after the call. */
  waitFor<Name extends TechnicalEventName>(name: Name, fits?: (event: Told<Name>) => boolean): Promise<Told<Name>>;
  stop(): Promise<void>;
}

export interface SceneRelayOptions
  extends Pick<RelayOptions, "routes" | "lanes" | "clock" | "retentionMs" | "service"> {
  readonly tables?: readonly (TableName | TableReference)[];
  readonly columns?: ColumnNames;
  readonly destinations?: RelayOptions["destinations"];
  readonly relaySchema?: string;
  readonly url?: string;
  readonly limits?: Partial<Limits>;
  readonly timing?: Partial<Timing>;
}

/** A database with outbox tables, a sink, and relays between the two. */
export interface Scene {
  readonly stage: Stage;
  readonly sink: Sink;
  relay(options?: SceneRelayOptions): Promise<LiveRelay>;
  /** Each event in a transaction of its own, in this order; returns their ids. */
  insert(table: TableName, events: readonly NewEvent[]): Promise<string[]>;
  /** Waits until the sink has these events, and returns the ids of all arrivals in order. */
  arrived(ids: readonly string[], timeoutMs?: number): Promise<string[]>;
}

export interface NewEvent {
  readonly id?: string;
  readonly key?: string | null;
  readonly type?: string;
  readonly payload?: string | Buffer | null;
  readonly headers?: object | null;
}

/** Short, so that tests are quick; the proportions are those of the defaults. */
export const QUICK: Partial<Timing> = {
  leaseMs: 4_000,
  leaseMarginMs: 1_000,
  publishTimeoutMs: 2_000,
  pollIntervalMs: 50,
  balanceMs: 200,
  reviewMs: 200,
  backoffInitialMs: 50,
  backoffMaxMs: 500,
};

let databases = 0;

/** Runs in a database of its own on the shared server. */
export async function withScene(
  server: PostgresServer,
  tables: readonly OutboxTable[],
  run: (scene: Scene) => Promise<void>,
  options: { readonly relaySchema?: string } = {},
): Promise<void> {
  databases += 1;
  await using started = new AsyncDisposableStack();
  const [stage, sink] = await Promise.all([
    openStage(server, { database: `scene_${databases}`, tables, ...options }),
    startSink(),
  ]);
  started.use(stage);
  started.use(sink);
  const relay = async (relayOptions: SceneRelayOptions = {}) =>
    started.use(await startRelay(stage, sink, { tables, ...options, ...relayOptions }));
  await run({
    stage,
    sink,
    relay,
    insert: (table, events) => insertEvents(stage, table, events),
    arrived: async (ids, timeoutMs) => {
      const hasAll = (there: ReadonlySet<string>) => ids.every((id) => there.has(id));
      const arrivals = await sink.waitFor((all) => hasAll(new Set(all.map(({ id }) => id))), timeoutMs);
      return arrivals.map(({ id }) => id);
    },
  });
}

async function startRelay(stage: Stage, sink: Sink, options: SceneRelayOptions): Promise<LiveRelay> {
  const { tables = [], columns, relaySchema = "outbox_relay", url = stage.relayUrl, ...rest } = options;
  const timing = { ...QUICK, ...options.timing };
  const relay = createRelay({
    destinations: { sink: sinkPublisher(sink.port) },
    ...rest,
    timing,
    sources: tableSources({
      url,
      relaySchema,
      tables,
      leaseMs: timing.leaseMs ?? 4_000,
      ...(columns === undefined ? {} : { columns }),
    }),
  });
  const live = listen(relay);
  await relay.start();
  return live;
}

function listen(relay: Relay): LiveRelay {
  const events: TechnicalEvent[] = [];
  relay.onAny((event) => events.push(event));
  const told = <Name extends TechnicalEventName>(name: Name, fits: (event: Told<Name>) => boolean = () => true) =>
    events.filter((event): event is Told<Name> => event.name === name && fits(event as Told<Name>));
  return {
    events,
    told,
    waitFor: async (name, fits) => await until(`the relay tells ${name}`, () => told(name, fits)[0]),
    stop: () => relay.stop(),
    [Symbol.asyncDispose]: () => relay.stop(),
  };
}

async function insertEvents(stage: Stage, table: TableName, events: readonly NewEvent[]): Promise<string[]> {
  const ids: string[] = [];
  for (const { id = randomUUID(), key = "key-1", type = "order.placed", payload = "{}", headers = null } of events) {
    await stage.sql(
      `insert into ${quoteTable(table)} (id, aggregate_id, event_type, payload, headers) values ($1, $2, $3, $4, $5)`,
      [id, key, type, payload, headers === null ? null : JSON.stringify(headers)],
    );
    ids.push(id);
  }
  return ids;
}
