import type { ServiceConfig } from "../config/service-config.ts";
import type { RequestsConfig } from "../config/sources/requests-config.ts";
import { systemClock, systemRandom } from "../core/clock.ts";
import { RelayError } from "../core/errors.ts";
import { examineRequests } from "../operations/doctor/requests-check.ts";
import type { OperationTarget } from "../operations/events/event-source.ts";
import type { EventLog } from "../ports/event-log.ts";
import type { RequestGroup, RequestQueue } from "../ports/request-queue.ts";
import { bullmqRequestQueue } from "../publishers/bullmq/request-queue.ts";
import type { RequestListener } from "../requests/request-listener.ts";
import { checkpointName, contextName } from "../requests/request-names.ts";
import { type PositionCopy, RequestRelay } from "../requests/request-relay.ts";
import { CheckpointStream } from "../sources/kurrentdb/kurrentdb-checkpoint.ts";
import { kurrentdbLog } from "../sources/kurrentdb/kurrentdb-source.ts";
import type { Logger } from "../telemetry/logs/logger.ts";
import { logRequests } from "../telemetry/logs/request-log.ts";
import type { OverviewHistory } from "../telemetry/metrics/overview-history.ts";
import { RequestMetrics } from "../telemetry/metrics/request-metrics.ts";
import { MetricsPush } from "../telemetry/push/metrics-push.ts";
import type { PushTally } from "../telemetry/push-tally.ts";
import { EXIT } from "./exit.ts";
import { RequestView } from "./request-view.ts";
import type { OnceResult, RunningService } from "./running-service.ts";
import { VERSION } from "./version.ts";

interface RequestServiceOptions {
  readonly config: ServiceConfig;
  readonly requests: RequestsConfig;
  readonly logger: Logger;
  readonly pushes: PushTally;
  readonly history: OverviewHistory;
}

/**
 * The request relay of an event store as a service: one small relay per context, with one connection to each server.
 */
export class RequestService implements RunningService {
  readonly #options: RequestServiceOptions;
  readonly #log: EventLog;
  readonly #queue: RequestQueue;
  readonly #metrics: RequestMetrics;
  readonly #view: RequestView;
  readonly #relays: readonly RequestRelay[];
  readonly #stopping = new AbortController();
  readonly #push: MetricsPush | null;
  #working: Promise<unknown> = Promise.resolve();
  #dispatched = 0;

  constructor(options: RequestServiceOptions) {
    const { config, logger, requests } = options;
    this.#options = options;
    this.#log = kurrentdbLog(requests.log);
    this.#queue = bullmqRequestQueue(requests.queue);
    this.#metrics = new RequestMetrics(VERSION, requests.groups);
    const pings = { pingLog: () => this.#log.ping(), pingQueue: () => this.#queue.ping() };
    this.#view = new RequestView(config, this.#metrics, {
      ...pings,
      history: options.history,
      examine: () => examineRequests({ log: this.#log, queue: this.#queue, groups: requests.groups }),
    });
    const count = {
      dispatched: () => {
        this.#dispatched += 1;
      },
    };
    const listener = allOf(logRequests(logger, systemClock), this.#metrics, this.#view, count);
    this.#relays = requests.groups.map((group) => this.#relay(group, listener));
    this.#push = this.#openPush();
  }

  get view(): RunningService["view"] {
    return this.#view.faces;
  }

  get access(): ServiceConfig["access"] {
    return this.#options.config.access;
  }

  async run(): Promise<void> {
    const { signal } = this.#stopping;
    this.#push?.start();
    this.#working = Promise.all(this.#relays.map((relay) => relay.run(signal)));
    await this.#working;
    // A halted context stays visible in health until the operator restarts the service.
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
  }

  async once(): Promise<OnceResult> {
    const work = Promise.all(this.#relays.map((relay) => relay.drain(this.#stopping.signal)));
    this.#working = work.catch(() => {});
    const drained = await work;
    const dead = drained.reduce((sum, one) => sum + one.dead, 0);
    const elsewhere = this.#options.requests.groups.filter((_, at) => drained[at]?.isElsewhere).map(contextName);
    const parts = [
      `${this.#dispatched} dispatched`,
      ...(dead > 0 ? [`${dead} dead`] : []),
      ...(elsewhere.length > 0 ? [`another instance dispatches for ${elsewhere.join(", ")}`] : []),
    ];
    return { code: parts.length > 1 ? EXIT.partly : EXIT.ok, line: parts.join(", ") };
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#working;
    await this.#push?.stop();
    this.#metrics.stop();
    await Promise.all([this.#log.close(), this.#queue.close()]);
  }

  operations(): OperationTarget {
    throw new RelayError(
      "CONFIG_INVALID",
      "With KURRENTDB_URL the API is off, because it supports only outboxes in a database. Use `outbox-relay requests`",
    );
  }

  #relay(group: RequestGroup, listener: RequestListener): RequestRelay {
    const { config, requests } = this.#options;
    const { filter, isCopied, leaseMs, sinceMs, start } = requests;
    return new RequestRelay({
      ...{ group, filter, leaseMs, sinceMs, start, listener },
      log: this.#log,
      queue: this.#queue,
      copy: isCopied ? positionCopy(this.#log) : null,
      owner: config.instanceName,
      clock: systemClock,
      random: systemRandom,
    });
  }

  #openPush(): MetricsPush | null {
    const { config, logger, pushes: tally } = this.#options;
    if (config.telemetry.metricsPush === null) return null;
    const labels = { job: config.service, instance: config.instanceName };
    const families = () => this.#metrics.families();
    return new MetricsPush({ ...config.telemetry.metricsPush, labels, families, tally, logger, clock: systemClock });
  }
}

/** Copies the checkpoint to a stream of the event store that has the checkpoint's name. */
function positionCopy(log: EventLog): PositionCopy {
  const streams = new Map<string, CheckpointStream>();
  const streamOf = (group: RequestGroup) => {
    const name = checkpointName(group);
    const stream = streams.get(name) ?? new CheckpointStream(log, name);
    streams.set(name, stream);
    return stream;
  };
  return {
    read: (group) => streamOf(group).read(),
    write: (group, position) => streamOf(group).write(position),
  };
}

function allOf(...listeners: readonly Partial<RequestListener>[]): RequestListener {
  const notify = (each: (listener: Partial<RequestListener>) => void) => {
    for (const listener of listeners) each(listener);
  };
  return {
    dispatched: (...args) => notify((it) => it.dispatched?.(...args)),
    skipped: (...args) => notify((it) => it.skipped?.(...args)),
    died: (...args) => notify((it) => it.died?.(...args)),
    lag: (...args) => notify((it) => it.lag?.(...args)),
    turned: (...args) => notify((it) => it.turned?.(...args)),
  };
}
