import type { DestinationConfig } from "../config/destinations/destination-scheme.ts";
import type { ServiceConfig } from "../config/service-config.ts";
import { type FoundTable, sourceName } from "../config/sources/find-tables.ts";
import { Backoff } from "../core/backoff.ts";
import { systemClock } from "../core/clock.ts";
import { isRelayError, RelayError, reasonOf } from "../core/errors.ts";
import type { OperationTarget } from "../operations/events/event-source.ts";
import { shownRules } from "../operations/events/redact-shown.ts";
import type { Publisher } from "../ports/publisher.ts";
import { openDatabase } from "../postgres/pool.ts";
import type { BudgetedRecorder } from "../telemetry/attempts/attempt-recorder.ts";
import { logEvents } from "../telemetry/logs/log-events.ts";
import type { Logger } from "../telemetry/logs/logger.ts";
import { redactor } from "../telemetry/logs/redaction.ts";
import { RepeatLimiter } from "../telemetry/logs/repeat-limiter.ts";
import type { OverviewHistory } from "../telemetry/metrics/overview-history.ts";
import { MetricsPush } from "../telemetry/push/metrics-push.ts";
import type { WebhookNotifier } from "../telemetry/push/webhook-notifier.ts";
import type { PushTally } from "../telemetry/push-tally.ts";
import type { Tracing } from "../telemetry/tracing/tracing.ts";
import { buildEngine, type Engine, requireRoutes, routesOf } from "./engine.ts";
import { openNotifier } from "./open-notifier.ts";
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
  /** Survives a reload, which replaces the service. */
  readonly history: OverviewHistory;
  readonly migrate: boolean;
  /** Delivers the current backlog and ends: waits for no database, and looks for no new tables. */
  readonly once: boolean;
}

const CONNECT_PAUSE_MS = { firstMs: 200, lastMs: 5_000 };
const FIND_EVERY_MS = { complete: 60_000, incomplete: 5_000 };
const RIGHTS_MS = 15_000;

/**
 * The relay as a service: waits for its database, finds the tables, delivers, and serves health and metrics. It throws
 * errors that only an operator can fix, and logs and retries all others.
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
  readonly #notifier: WebhookNotifier | null;
  readonly #recorder: BudgetedRecorder | null;
  #tracing: Tracing | null = null;
  #stopped: Promise<void> | null = null;
  #operations: OperationTarget | null = null;
  readonly #replays: ReplayService;
  readonly #remarks = new RepeatLimiter(systemClock, 3_600_000);

  constructor(options: ServiceOptions) {
    this.#options = options;
    const { config } = options;
    this.#store = openStore(config);
    this.#recorder = openRecorder(config);
    this.#notifier = openNotifier(options, () => this.view.noticeState());
    this.view = new ServiceView(config, this.#store, {
      ...options,
      recorder: this.#recorder,
      target: () => this.operations(),
      remark: () => this.#notifier?.problem ?? null,
    });
    this.#metricsPush = this.#openMetricsPush();
    this.#replays = new ReplayService(() => this.operations(), options.logger);
    this.#fatal.promise.catch(() => {});
  }

  /**
   * Resolves with an engine that is ready to start; null when it was stopped before, or when there is no table to read
   * yet.
   */
  async prepare(): Promise<Engine | null> {
    this.#metricsPush?.start();
    this.#tracing = await this.#openTracing();
    await this.#retryUntilReachable(() => this.#requireSchema());
    const tables = await this.#retryUntilReachable(() => this.#find());
    return tables === null ? null : await this.#replaceEngine(tables);
  }

  /** Delivers until stopped. Rejects on errors that only an operator can fix. */
  async run(): Promise<void> {
    void this.view.overviews.start();
    this.#notifier?.start();
    const engine = await this.prepare();
    await engine?.relay.start();
    if (this.#options.config.store === null) this.#replays.start();
    await Promise.race([this.#watchTables(), this.#fatal.promise]);
  }

  once(): Promise<OnceResult> {
    return runOnce(this);
  }

  /** Runs the plans that were started while no relay was running. */
  async runPlans(): ReturnType<ReplayService["once"]> {
    return this.#options.config.store === null ? await this.#replays.once() : { count: 0, unfinished: [] };
  }

  /** Finishes or returns all claims, and closes. Legal at any time, also twice. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  /** What the API works on. Has its own connections, opened at first use, so that no query delays a delivery. */
  operations(): OperationTarget {
    const { database, sources, store } = this.#options.config;
    if (store !== null) {
      throw new RelayError(
        "CONFIG_INVALID",
        "OUTBOX_STORE is a Redis server, and the API supports only outboxes in a database",
      );
    }
    this.#operations ??= {
      database: openDatabase({ ...database, applicationName: "outbox-relay api", connectionsMax: 2 }),
      columns: sources.columns,
      shown: shownRules(this.#options.config.record.redact),
      traceUrl: this.#options.config.telemetry.traceUrl,
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

  /**
   * Retries with backoff until the database answers; null when stopped before. A run that ends by itself does not wait.
   */
  async #retryUntilReachable<T>(work: () => Promise<T>): Promise<T | null> {
    const { logger, once } = this.#options;
    const repeats = new RepeatLimiter(systemClock, 60_000);
    const backoff = new Backoff(CONNECT_PAUSE_MS);
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
        if (repeated !== null) logger.error({ reason, repeated }, "the database is unreachable; retrying");
        await systemClock.sleep(backoff.nextMs(), this.#stopping.signal);
      }
    }
    return null;
  }

  /** Starts no second engine beside the old one: stops it first, then builds one for these tables. */
  async #replaceEngine(tables: readonly FoundTable[]): Promise<Engine | null> {
    const { config, logger } = this.#options;
    await this.#stopEngine();
    this.#tables = tables;
    for (const { schema, table, isThere } of tables) {
      if (!isThere) logger.error({ schema, table }, "there is no table with this name; the relay keeps looking for it");
    }
    if (tables.length === 0) {
      logger.warn("no schema has an outbox table; the relay keeps looking for one");
      return null;
    }
    const publishers = await this.#openPublishers(tables);
    if (this.#stopping.signal.aborted) {
      await closeAll(publishers);
      return null;
    }
    const recorder = this.#recorder;
    const { answers } = this.#options.history;
    const engine = buildEngine({ answers, config, store: this.#store, publishers, recorder, tables });
    this.#engine = engine;
    this.view.show(engine);
    this.#listen(engine);
    const names = tables.map((table) => `${sourceName(table)} (${table.preset})`);
    logger.info({ sources: names, destinations: [...publishers.keys()] }, "reading");
    return engine;
  }

  /** Opens the destinations that a route uses. A guarantee that one of them cannot give fails the whole service. */
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

  async #stopEngine(): Promise<void> {
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
   * The service never lowers a guarantee silently: without the rights for it, it does not start. Unreachable brokers
   * and an unfit ledger, which an operator can correct meanwhile, do not stop the start: the engine checks them again.
   * A run that ends by itself does not wait for a ledger.
   */
  async #requireTransactions(destination: DestinationConfig, publisher: Publisher, slots: number): Promise<void> {
    if (publisher.transactions === undefined) {
      if (!destination.isExactlyOnce) return;
      throw new RelayError("TRANSACTIONS_REFUSED", `${publisher.name} offers no transactions`);
    }
    const timeout = new AbortController();
    try {
      const timedOut = systemClock.sleep(RIGHTS_MS, timeout.signal).then(() => "timeout" as const);
      const asked = publisher.transactions.prepare(slots);
      if ((await Promise.race([asked, timedOut])) !== "timeout") this.#mayUseTransactions = true;
      else asked.catch(() => {});
    } catch (error) {
      if (isRelayError(error, "TRANSACTIONS_REFUSED")) throw error;
      if (isRelayError(error, "LEDGER_UNFIT") && this.#options.once) throw error;
    } finally {
      timeout.abort();
    }
  }

  /** Looking for tables counts as a poll: without tables there is no other one. */
  async #find(): Promise<readonly FoundTable[]> {
    const found = await this.#store.find();
    this.view.polled();
    requireRoutes(this.#options.config, found);
    return found;
  }

  /** Looks for new tables, and does the upkeep, until stopped. */
  async #watchTables(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const isKept = await this.#upkeep();
      const isComplete = isKept && this.#tables.length > 0 && this.#tables.every(({ isThere }) => isThere);
      await systemClock.sleep(isComplete ? FIND_EVERY_MS.complete : FIND_EVERY_MS.incomplete, signal);
      if (signal.aborted) return;
      // The sources report a database that does not answer.
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
      const engine = await this.#replaceEngine(found);
      if (!signal.aborted) await engine?.relay.start();
    }
  }

  /**
   * Logs what the operator should know, again after an hour if it persists. False when the upkeep must be retried soon.
   */
  async #upkeep(): Promise<boolean> {
    const { logger } = this.#options;
    const unrecorded = this.#recorder?.state.error ?? null;
    if (unrecorded !== null) {
      const repeated = this.#remarks.count(unrecorded);
      if (repeated !== null) logger.warn({ reason: unrecorded, repeated }, "attempts cannot be recorded");
    }
    try {
      const remarks = await this.#store.upkeep(this.#tables);
      for (const { fix, severity, what } of remarks) {
        const repeated = this.#remarks.count(what);
        if (repeated !== null) logger[severity === "error" ? "error" : "warn"]({ fix, repeated }, what);
      }
      this.view.noteUpkeep(remarks.find(({ isFailure }) => isFailure === true)?.what ?? null);
      return true;
    } catch (error) {
      const reason = reasonOf(error);
      const repeated = this.#remarks.count(reason);
      // The sources report a database that does not answer.
      if (!isRelayError(error, "DATABASE_UNREACHABLE")) this.view.noteUpkeep(reason);
      if (repeated !== null) logger.error({ reason, repeated }, "the upkeep of a managed outbox failed; retrying");
      return false;
    }
  }

  async #stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all([this.#notifier?.stop(), this.#replays.stop(), this.#stopEngine()]);
    await Promise.all([this.#tracing?.stop(), this.#metricsPush?.stop(), this.#recorder?.stop()]);
    this.view.stop();
    // A long query must delay neither the end nor a reload. Dropping it is safe: it is read-only, or one transaction.
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

  /** Loads OpenTelemetry only when tracing is on. */
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

/** The engine's refusal, without the code that the engine appended to the reason. */
class Refused extends RelayError {
  constructor(reason: string) {
    super("TRANSACTIONS_REFUSED", reason.replace(/ \[TRANSACTIONS_REFUSED\].*$/, ""));
  }
}

/** A missing table that appears needs no new relay: its source starts by itself. */
function isSame(found: readonly FoundTable[], served: readonly FoundTable[]): boolean {
  const keys = (tables: readonly FoundTable[]) =>
    tables
      .map((table) => JSON.stringify([sourceName(table), table.preset, table.isDebezium]))
      .sort()
      .join();
  return keys(found) === keys(served);
}
