import { AnswerBook } from "../core/answer-times.ts";
import { type Clock, type Random, systemClock, systemRandom } from "../core/clock.ts";
import { RelayError } from "../core/errors.ts";
import { DEFAULT_LIMITS, DEFAULT_TIMING, type Limits, type Timing } from "../core/limits.ts";
import type { AttemptRecorder } from "../ports/attempt-recorder.ts";
import type { Publisher } from "../ports/publisher.ts";
import type { QueueSource } from "../ports/queue-store.ts";
import type { TechnicalEvent, TechnicalEventName } from "../ports/technical-events.ts";
import { compileRoutes, type Route } from "../routing/routes.ts";
import { ByteBudget } from "./byte-budget.ts";
import type { PipelineContext } from "./context.ts";
import { Destination } from "./destination.ts";
import { type DrainReport, drained } from "./drain.ts";
import { attemptsMaxOf } from "./failure-rule.ts";
import { Instance } from "./instance.ts";
import { Readiness, type UnreadyPipeline } from "./readiness.ts";
import { TechnicalEventBus, type TechnicalEventListener } from "./technical-event-bus.ts";

/** What a relay is made of. */
export interface RelayOptions<DestinationName extends string = string> {
  readonly sources: readonly QueueSource[];
  /** By name: a publisher, or a publisher with settings of its own. */
  readonly destinations: Readonly<Record<DestinationName, Publisher | RelayDestination>>;
  /** Absent: all events go to the only destination, topic = event type, key = aggregate id. */
  readonly routes?: readonly Route<NoInfer<DestinationName>>[];
  readonly limits?: Partial<Limits>;
  readonly timing?: Partial<Timing>;
  /** Settings of single sources, by name. The limits of a destination itself stay those of the relay. */
  readonly policies?: (source: string) => SourcePolicy<NoInfer<DestinationName>>;
  /** The number of lanes of a new pipeline. Later the number in the database wins. */
  readonly lanes?: number;
  /** Delivered rows older than this are deleted. Absent: kept for ever. */
  readonly retentionMs?: number;
  /** The name of this process in the list of instances, for people. */
  readonly instanceName?: string;
  /**
   * The deployment that this relay belongs to. Instances of one deployment share the lanes; another deployment on the
   * same table is refused. Absent: it counts as part of every deployment.
   */
  readonly service?: string;
  /** Records attempts for people. */
  readonly recorder?: AttemptRecorder;
  /** The answer times of the destinations, to keep them across a reload. Absent: they end with this relay. */
  readonly answers?: Pick<AnswerBook, "of">;
  readonly clock?: Clock;
  readonly random?: Random;
}

/** A destination with its own settings. */
export interface RelayDestination {
  readonly publisher: Publisher;
  /** Events per second of this instance. Absent: no limit. */
  readonly ratePerSecond?: number | undefined;
  /** They win over the limits of the relay and of a source. */
  readonly limits?: Partial<Limits> | undefined;
  /** Where it is, without secrets. For people, and to compare instances. */
  readonly address?: string | undefined;
}

/** Settings of one source, which win over those of the relay. */
export interface SourcePolicy<DestinationName extends string = string> {
  readonly routes?: readonly Route<DestinationName>[];
  readonly limits?: Partial<Limits>;
  readonly timing?: Partial<Pick<Timing, "pollIntervalMs">>;
}

/** A running relay. */
export interface Relay extends AsyncDisposable {
  /**
   * Starts to deliver, and waits for nothing: neither for servers nor for lanes, which is what `ready` is for. Technical
   * events report what is unreachable, and the relay retries. Rejects with RELAY_STOPPED after a stop.
   */
  start(): Promise<void>;
  /**
   * Resolves once, when every pipeline is connected, its tables are found, and all of its lanes are taken, by this relay
   * or by others. It stays pending as long as that takes, for instance until a missing table exists: `unready` says why.
   * Destinations are not part of it: events wait for those. Rejects with RELAY_STOPPED, at the end of a `stop` that
   * came first; without a listener the rejection is ignored.
   */
  readonly ready: Promise<void>;
  /** The pipelines that do not deliver at present, each with the reason; also before the start and after the stop. */
  unready(): readonly UnreadyPipeline[];
  /**
   * Settles with the first `stop`, as that does. Nothing else ends a relay: it outlives every outage. Without a listener
   * a rejection is ignored.
   */
  readonly ended: Promise<void>;
  /** Stops claiming, finishes and settles what is on the wire, releases the lanes and closes everything. */
  stop(): Promise<void>;
  /** Starts if necessary. Resolves when every pending event is delivered, held, or cannot reach its destination. */
  drain(): Promise<DrainReport>;
  /** Subscribes to one kind of technical event. Returns the function that unsubscribes. */
  on<Name extends TechnicalEventName>(name: Name, listener: TechnicalEventListener<Name>): () => void;
  /** Subscribes to all technical events. Returns the function that unsubscribes. */
  onAny(listener: (event: TechnicalEvent) => void): () => void;
}

/** Creates a relay. Throws CONFIG_INVALID for settings that cannot work; it connects to nothing before `start`. */
export function createRelay<DestinationName extends string>(given: RelayOptions<DestinationName>): Relay {
  const options: RelayOptions = given;
  const clock = options.clock ?? systemClock;
  const bus = new TechnicalEventBus(clock);
  const destinations = destinationsOf(options, clock, bus);
  const instances = instancesOf(options, clock, bus, destinations);
  const timing = { ...DEFAULT_TIMING, ...options.timing };
  const readiness = new Readiness(instances, bus);
  const ended = Promise.withResolvers<void>();
  // The caller of `stop` gets the error.
  ended.promise.catch(() => undefined);
  let stopped: Promise<void> | null = null;

  async function start(): Promise<void> {
    if (stopped !== null) throw new RelayError("RELAY_STOPPED", "This relay was stopped.");
    readiness.started();
    for (const instance of instances) instance.start();
  }

  async function stopAll(): Promise<void> {
    await Promise.all(instances.map((instance) => instance.stop(timing.shutdownMs)));
    const closing = Promise.all([
      ...[...destinations.values()].map((destination) => destination.close()),
      ...options.sources.map((source) => source.close()),
    ]);
    // A hanging connection must not keep the process from ending.
    const over = new AbortController();
    await Promise.race([closing, clock.sleep(timing.shutdownMs / 4, over.signal)]);
    over.abort();
  }

  function stop(): Promise<void> {
    if (stopped === null) {
      const isOver = readiness.stopping();
      stopped = stopAll().finally(isOver);
      ended.resolve(stopped);
    }
    return stopped;
  }

  async function drain(): Promise<DrainReport> {
    await start();
    return await drained({ clock, timing, instances, destinations: [...destinations.values()] });
  }

  return {
    start,
    ready: readiness.ready,
    unready: () => readiness.unready(),
    ended: ended.promise,
    stop,
    drain,
    on: (name, listener) => bus.on(name, listener),
    onAny: (listener) => bus.onAny(listener),
    [Symbol.asyncDispose]: stop,
  };
}

const DEFAULT_LANES = 4;

function destinationsOf(options: RelayOptions, clock: Clock, events: TechnicalEventBus): Map<string, Destination> {
  const limits = checkLimits({ ...DEFAULT_LIMITS, ...options.limits });
  const timing = checkTiming({ ...DEFAULT_TIMING, ...options.timing });
  const circuit = { initialMs: timing.circuitInitialMs, maxMs: timing.circuitMaxMs };
  const random = options.random ?? systemRandom;
  const answers = options.answers ?? new AnswerBook(clock);
  const entries = destinationEntries(options);
  if (entries.length === 0) throw new RelayError("CONFIG_INVALID", "destinations is empty: name at least one.");
  return new Map(
    entries.map(([name, { publisher, ratePerSecond }]) => [
      name,
      new Destination({
        name,
        publisher,
        limits,
        circuit,
        ratePerSecond,
        clock,
        random,
        events,
        answers: answers.of(name),
      }),
    ]),
  );
}

/** Creates one pipeline per source and destination that a route connects, and one instance per database. */
function instancesOf(
  options: RelayOptions,
  clock: Clock,
  events: TechnicalEventBus,
  destinations: ReadonlyMap<string, Destination>,
): Instance[] {
  const instanceTiming = checkTiming({ ...DEFAULT_TIMING, ...options.timing });
  const random = options.random ?? systemRandom;
  const names = [...destinations.keys()];
  const settings = new Map(destinationEntries(options));
  if (options.routes !== undefined) compileRoutes(options.routes, names);
  if (options.sources.length === 0) throw new RelayError("CONFIG_INVALID", "sources is empty: name at least one.");

  const budget = new ByteBudget(options.sources.length * names.length);
  const pipelinesOf = (source: QueueSource) => {
    const own = options.policies?.(source.name) ?? {};
    const routeList = own.routes ?? options.routes ?? routeToTheOnly(names);
    const routes = compileRoutes(routeList, names);
    const timing = checkTiming({ ...instanceTiming, ...own.timing });
    return [...destinations.values()]
      .filter((destination) => routeList.some((route) => route.destination === destination.name))
      .map((destination): { context: PipelineContext; retentionMs: number | null } => {
        const name = `${source.name}->${destination.name}`;
        const ofDestination = settings.get(destination.name)?.limits;
        const limits = checkLimits({ ...DEFAULT_LIMITS, ...options.limits, ...own.limits, ...ofDestination });
        const store = source.pipeline({
          name,
          types: routes.filterFor(destination.name),
          lanes: options.lanes ?? DEFAULT_LANES,
          attemptsMax: attemptsMaxOf(routeList, destination.name),
          payloadBytesMax: limits.payloadBytesMax,
          headersMax: limits.headersMax,
          ...(options.service === undefined ? {} : { service: options.service }),
        });
        const recorder = options.recorder ?? null;
        const context = { name, store, destination, routes, limits, budget, timing, clock, random, events, recorder };
        return { context, retentionMs: options.retentionMs ?? null };
      });
  };

  const byDatabase = Map.groupBy(options.sources, (source) => source.membership.databaseId);
  return [...byDatabase.values()].map((sources) => {
    const { membership } = sources[0]!;
    const name = options.instanceName ?? "outbox-relay";
    return new Instance({
      name,
      service: options.service,
      addresses: new Map([...settings].map(([destination, { address }]) => [destination, address])),
      membership,
      pipelines: sources.flatMap(pipelinesOf),
      timing: instanceTiming,
      clock,
      random,
      events,
    });
  });
}

function destinationEntries({ destinations }: RelayOptions): [name: string, settings: RelayDestination][] {
  return Object.entries(destinations).map(([name, it]) => [name, "publisher" in it ? it : { publisher: it }]);
}

function routeToTheOnly(destinations: readonly string[]): Route[] {
  if (destinations.length === 1) return [{ destination: destinations[0]! }];
  throw new RelayError("CONFIG_INVALID", `routes is missing: say which events go to ${destinations.join(", ")}.`);
}

/** Throws CONFIG_INVALID for a limit that is not a positive number. */
export function checkLimits(limits: Limits): Limits {
  for (const [name, value] of Object.entries(limits)) requirePositive(`limits.${name}`, value);
  return limits;
}

/** Throws CONFIG_INVALID for a duration that is not positive or contradicts another one. */
export function checkTiming(timing: Timing): Timing {
  for (const [name, value] of Object.entries(timing)) requirePositive(`timing.${name}`, value);
  requireBelow("timing.leaseMarginMs", timing.leaseMarginMs, "timing.leaseMs", timing.leaseMs);
  // A publish must not outlive the lease: the next owner could deliver the same events at the same time.
  requireBelow("timing.publishTimeoutMs", timing.publishTimeoutMs, "timing.leaseMs", timing.leaseMs);
  return timing;
}

function requirePositive(name: string, value: number): void {
  if (Number.isFinite(value) && value > 0) return;
  throw new RelayError("CONFIG_INVALID", `${name} is ${value}; it must be a positive number.`);
}

function requireBelow(name: string, value: number, limitName: string, limit: number): void {
  if (value < limit) return;
  throw new RelayError("CONFIG_INVALID", `${name} (${value}) must be below ${limitName} (${limit}).`);
}
