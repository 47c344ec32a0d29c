import type { DestinationConfig } from "../config/destinations/destination-scheme.ts";
import { type FoundTable, sourceName } from "../config/find-tables.ts";
import type { ServiceConfig } from "../config/service-config.ts";
import { systemClock } from "../core/clock.ts";
import { isRelayError, RelayError, reasonOf } from "../core/errors.ts";
import type { OperationTarget } from "../operations/event-source.ts";
import { shownRules } from "../operations/redact-shown.ts";
import type { Publisher } from "../ports/publisher.ts";
import { openDatabase } from "../postgres/pool.ts";
import type { BudgetedRecorder } from "../telemetry/attempt-recorder.ts";
import { logEvents } from "../telemetry/log-events.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { OverviewHistory } from "../telemetry/overview-history.ts";
import { MetricsPush } from "../telemetry/push/metrics-push.ts";
import type { PushTally } from "../telemetry/push-tally.ts";
import { redactor } from "../telemetry/redaction.ts";
import { Repeats } from "../telemetry/repeats.ts";
import type { Tracing } from "../telemetry/tracing/tracing.ts";
import { buildEngine, type Engine, type EngineParts, requireRoutes, routesOf } from "./engine.ts";
import { openRecorder } from "./open-recorder.ts";
import type { OutboxStore } from "./outbox-store.ts";
import { postgresOutboxStore } from "./postgres-outbox-store.ts";
import { redisOutboxStore } from "./redis-outbox-store.ts";
import { ReplayService } from "./replay-service.ts";
import { runOnce } from "./run-once.ts";
import type { OnceResult, RunningService } from "./running-service.ts";
import { ServiceView } from "./service-view.ts";
import { VERSION } from "./version.ts";

interface ServiceOptions {
  readonly config: ServiceConfig;
  readonly logger: Logger;
  readonly pushes: PushTally;
  /** Lives on when another service takes the place of this one. */
  readonly history: OverviewHistory;
  readonly migrate: boolean;
  /** A run for what is there and no more: it does not wait for a database, nor look for new tables. */
  readonly once: boolean;
}

const CONNECT_PAUSE_MS = { first: 200, last: 5_000 };
const LOOK_EVERY_MS = { complete: 60_000, incomplete: 5_000 };
const RIGHTS_MS = 15_000;

/**
 * The relay as a service: waits for its database, finds the tables, delivers, and shows how it is. Errors that nobody
 * but a person can mend are thrown; all others are told and tried again.
 */
export class Service implements RunningService {
  readonly view: ServiceView;
  readonly #options: ServiceOptions;
  readonly #store: OutboxStore;
  readonly #stopping = new AbortController();
  readonly #fatal = Promise.withResolvers<never>();
  #engine: Engine | null = null;
  #tables: readonly FoundTable[] = [];
  #mayUseTransactions = false;
  #flushLogs: () => void = () => {};
  readonly #metricsPush: MetricsPush | null;
  readonly #recorder: BudgetedRecorder | null;
  #tracing: Tracing | null = null;
  #stopped: Promise<void> | null = null;
  #operations: OperationTarget | null = null;
  readonly #replays: ReplayService;
  readonly #remarks = new Repeats(systemClock, 3_600_000);

  constructor(options: ServiceOptions) {
    this.#options = options;
    const { config } = options;
    this.#store = openStore(config);
    this.#recorder = openRecorder(config);
    this.view = new ServiceView(config, this.#store, {
      ...options,
      recorder: this.#recorder,
      target: () => this.operations(),
    });
    this.#metricsPush = this.#openMetricsPush();
    this.#replays = new ReplayService(() => this.operations(), options.logger);
    this.#fatal.promise.catch(() => {});
  }

  /** Resolves with the engine ready to start; null when it was stopped before, or has no table to read yet. */
  async prepare(): Promise<Engine | null> {
    this.#metricsPush?.start();
    this.#tracing = await this.#openTracing();
    await this.#whenReachable(() => this.#requireSchema());
    const tables = await this.#whenReachable(() => this.#find());
    return tables === null ? null : await this.#renew(tables);
  }

  /** Delivers until stopped. Rejects when only a person can help. */
  async run(): Promise<void> {
    void this.view.overviews.start();
    const engine = await this.prepare();
    await engine?.relay.start();
    if (this.#options.config.store === null) this.#replays.start();
    await Promise.race([this.#lookForTables(), this.#fatal.promise]);
  }

  once(): Promise<OnceResult> {
    return runOnce(this);
  }

  /** Hands everything over in good order. Legal at any time, also twice. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  /** Where the API works, on connections of its own: no question may keep a delivery waiting. Opened by the first. */
  operations(): OperationTarget {
    const { database, sources, store } = this.#options.config;
    if (store !== null) {
      throw new RelayError("CONFIG_INVALID", "OUTBOX_STORE is a Redis: the API works on outboxes in a database only");
    }
    this.#operations ??= {
      database: openDatabase({ ...database, applicationName: "outbox-relay api", connectionsMax: 2 }),
      columns: sources.columns,
      shown: shownRules(this.#options.config.record.redact),
    };
    return this.#operations;
  }

  get access(): ServiceConfig["access"] {
    return this.#options.config.access;
  }

  async #requireSchema(): Promise<void> {
    const { logger, migrate } = this.#options;
    const migrations = migrate ? await this.#store.migrate() : [];
    if (migrations.length > 0) logger.info({ migrations }, "the schema was migrated");
    await this.#store.requireFit();
  }

  /** Tries until the database answers, with growing pauses; null when stopped before. A run for once does not wait. */
  async #whenReachable<T>(work: () => Promise<T>): Promise<T | null> {
    const { logger, once } = this.#options;
    const repeats = new Repeats(systemClock, 60_000);
    let pauseMs = CONNECT_PAUSE_MS.first;
    while (!this.#stopping.signal.aborted) {
      try {
        const result = await work();
        this.view.polled();
        return result;
      } catch (error) {
        const mayPass = isRelayError(error, "DATABASE_UNREACHABLE") || isRelayError(error, "DATABASE_BUSY");
        if (once || !mayPass) throw error;
        const repeated = repeats.count(error.code);
        const reason = reasonOf(error);
        if (repeated !== null) logger.error({ reason, repeated }, "the database cannot be reached; it is tried again");
        await systemClock.sleep(pauseMs, this.#stopping.signal);
        pauseMs = Math.min(CONNECT_PAUSE_MS.last, pauseMs * 2);
      }
    }
    return null;
  }

  /** Puts a relay for these tables in the place of the one before, which is stopped in good order first. */
  async #renew(tables: readonly FoundTable[]): Promise<Engine | null> {
    const { config, logger } = this.#options;
    await this.#letGo();
    this.#tables = tables;
    for (const { schema, table, isThere } of tables) {
      if (!isThere) logger.error({ schema, table }, "a table to read does not exist; it is looked for again");
    }
    if (tables.length === 0) {
      logger.warn("no schema has an outbox table; they are looked for again");
      return null;
    }
    const publishers = await this.#openPublishers(tables);
    if (this.#stopping.signal.aborted) {
      await closeAll(publishers);
      return null;
    }
    const watch: EngineParts["watch"] = (ends) => this.view.watch(ends);
    const recorder = this.#recorder;
    const engine = buildEngine({ config, store: this.#store, publishers, recorder, tables, watch });
    this.#engine = engine;
    this.view.show(engine);
    this.#listen(engine);
    const names = tables.map((table) => `${sourceName(table)} (${table.preset})`);
    logger.info({ sources: names, destinations: [...publishers.keys()] }, "reading");
    return engine;
  }

  /** Those of the destinations that a route leads to. A guarantee that one of them cannot give is an error of the whole. */
  async #openPublishers(tables: readonly FoundTable[]): Promise<ReadonlyMap<string, Publisher>> {
    const { config } = this.#options;
    const { destinations, lanes } = config;
    const wanted = new Set(tables.flatMap((table) => routesOf(config, table)).map(({ destination }) => destination));
    const publishers = new Map<string, Publisher>();
    try {
      for (const destination of destinations.filter(({ name }) => wanted.has(name))) {
        const opened = await destination.open();
        const publisher = this.#tracing?.watch(opened, destination.kind) ?? opened;
        publishers.set(destination.name, publisher);
        await this.#requireTransactions(destination, publisher, tables.length * lanes);
      }
      return publishers;
    } catch (error) {
      await closeAll(publishers);
      throw error;
    }
  }

  async #letGo(): Promise<void> {
    const engine = this.#engine;
    this.#engine = null;
    this.view.show(null);
    await engine?.relay.stop();
    this.#flushLogs();
  }

  #listen({ relay }: Engine): void {
    const { config, logger } = this.#options;
    this.#flushLogs = logEvents(relay, { logger, clock: systemClock, events: config.log.events });
    for (const name of ["SourceBroken", "LaneFailed"] as const) {
      relay.on(name, ({ code, reason }) => {
        if (code === "TRANSACTIONS_REFUSED" && !this.#mayUseTransactions) this.#fatal.reject(new Refused(reason));
      });
    }
  }

  /**
   * A guarantee is never lowered in silence: without the rights for it the service does not start. Brokers that cannot be
   * asked are no reason, and neither is a ledger that a person can correct meanwhile: the engine asks again. A run for
   * once does not wait for that.
   */
  async #requireTransactions(destination: DestinationConfig, publisher: Publisher, slots: number): Promise<void> {
    if (publisher.transactions === undefined) {
      if (!destination.isExactlyOnce) return;
      throw new RelayError("TRANSACTIONS_REFUSED", `${publisher.name} offers no transactions`);
    }
    const patience = new AbortController();
    try {
      const silence = systemClock.sleep(RIGHTS_MS, patience.signal).then(() => "silent" as const);
      const asked = publisher.transactions.prepare(slots);
      if ((await Promise.race([asked, silence])) !== "silent") this.#mayUseTransactions = true;
      else asked.catch(() => {});
    } catch (error) {
      if (isRelayError(error, "TRANSACTIONS_REFUSED")) throw error;
      if (isRelayError(error, "LEDGER_UNFIT") && this.#options.once) throw error;
    } finally {
      patience.abort();
    }
  }

  /** A look for tables is a poll too: there may be nothing else to ask. */
  async #find(): Promise<readonly FoundTable[]> {
    const found = await this.#store.find();
    this.view.polled();
    requireRoutes(this.#options.config, found);
    return found;
  }

  /** Ends when stopped. */
  async #lookForTables(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await this.#upkeep();
      const isComplete = this.#tables.length > 0 && this.#tables.every(({ isThere }) => isThere);
      await systemClock.sleep(isComplete ? LOOK_EVERY_MS.complete : LOOK_EVERY_MS.incomplete, signal);
      if (signal.aborted) return;
      // A database that cannot be asked is told of by the sources.
      const found = await this.#find().catch((error: unknown) => {
        const reason = reasonOf(error);
        if (isRelayError(error, "CONFIG_INVALID")) this.#options.logger.error({ reason }, "a new table is not read");
        return null;
      });
      if (found === null || signal.aborted) continue;
      if (isSame(found, this.#tables)) {
        this.#tables = found;
        continue;
      }
      this.#options.logger.info("the list of tables has changed");
      const engine = await this.#renew(found);
      if (!signal.aborted) await engine?.relay.start();
    }
  }

  /** What a person should know is told, again after an hour if it is still so. */
  async #upkeep(): Promise<void> {
    const { logger } = this.#options;
    const unrecorded = this.#recorder?.state.error ?? null;
    if (unrecorded !== null) {
      const repeated = this.#remarks.count(unrecorded);
      if (repeated !== null) logger.warn({ reason: unrecorded, repeated }, "attempts cannot be recorded");
    }
    try {
      for (const { fix, severity, what } of await this.#store.upkeep(this.#tables)) {
        const repeated = this.#remarks.count(what);
        if (repeated !== null) logger[severity === "error" ? "error" : "warn"]({ fix, repeated }, what);
      }
    } catch (error) {
      const reason = reasonOf(error);
      const repeated = this.#remarks.count(reason);
      if (repeated !== null)
        logger.error({ reason, repeated }, "the upkeep of a managed outbox failed; it is tried again");
    }
  }

  async #stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all([this.#replays.stop(), this.#letGo()]);
    await Promise.all([this.#tracing?.stop(), this.#metricsPush?.stop(), this.#recorder?.stop()]);
    this.view.stop();
    // A question that takes long must keep neither the end waiting nor a reload: it is read-only, or done on its own.
    void this.#operations?.database.close();
    await this.#store.close();
  }

  #openMetricsPush(): MetricsPush | null {
    const { config, logger, pushes: tally } = this.#options;
    if (config.telemetry.metricsPush === null) return null;
    const labels = { job: config.service, instance: config.instanceName };
    const families = this.view.metricFamilies;
    return new MetricsPush({ ...config.telemetry.metricsPush, labels, families, tally, logger, clock: systemClock });
  }

  /** OpenTelemetry is loaded only when it is used. */
  async #openTracing(): Promise<Tracing | null> {
    const { config, logger, pushes: tally } = this.#options;
    if (config.telemetry.tracing === null) return null;
    const { openTracing } = await import("../telemetry/tracing/tracing.ts");
    return await openTracing({
      ...config.telemetry.tracing,
      service: config.service,
      version: VERSION,
      instance: config.instanceName,
      tally,
      logger,
      clock: systemClock,
      redact: redactor(config.secrets),
    });
  }
}

function openStore(config: ServiceConfig): OutboxStore {
  return config.store === null ? postgresOutboxStore(config) : redisOutboxStore(config.store);
}

async function closeAll(publishers: ReadonlyMap<string, Publisher>): Promise<void> {
  await Promise.all([...publishers.values()].map((publisher) => publisher.close()));
}

/** As the engine told it. */
class Refused extends RelayError {
  constructor(reason: string) {
    super("TRANSACTIONS_REFUSED", reason.replace(/ \[TRANSACTIONS_REFUSED\].*$/, ""));
  }
}

/** A missing table that appears under its name needs no new relay: its source begins by itself. */
function isSame(found: readonly FoundTable[], served: readonly FoundTable[]): boolean {
  const keys = (tables: readonly FoundTable[]) =>
    tables
      .map((table) => JSON.stringify([sourceName(table), table.preset, table.isDebezium]))
      .sort()
      .join();
  return keys(found) === keys(served);
}
