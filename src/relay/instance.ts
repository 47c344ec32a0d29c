import type { Clock, Random } from "../core/clock.ts";
import { isRelayError, reasonOf, stackOf } from "../core/errors.ts";
import type { Timing } from "../core/limits.ts";
import type { Joining, Membership } from "../ports/membership.ts";
import type { TypeFilter } from "../ports/queue-store.ts";
import type { TechnicalEvents } from "../ports/technical-events.ts";
import type { PipelineContext } from "./context.ts";
import { createReaper } from "./reaper.ts";
import { Session } from "./session.ts";
import { sentAt, Tenure } from "./tenure.ts";
import { untilAborted } from "./until-aborted.ts";

/** Renewals per lease: two may fail before the tenure is over. */
const RENEWALS_PER_LEASE = 3;

interface InstanceOptions {
  readonly name: string;
  readonly service: string | undefined;
  /** Where each destination leads, for people. */
  readonly addresses: Readonly<Record<string, string>>;
  readonly membership: Membership;
  readonly pipelines: readonly { readonly context: PipelineContext; readonly retentionMs: number | null }[];
  readonly timing: Timing;
  readonly clock: Clock;
  readonly random: Random;
  readonly events: TechnicalEvents;
}

/**
 * This process in the eyes of one database: it joins, keeps its heartbeat and serves its pipelines. When the tenure is
 * lost, everything under it is given up, and it joins again as somebody new.
 */
export class Instance {
  readonly #options: InstanceOptions;
  readonly #stopping = new AbortController();
  #sessions: Session[] = [];
  #tenure: Tenure | null = null;
  #running: Promise<void> | null = null;

  constructor(options: InstanceOptions) {
    this.#options = options;
  }

  start(): void {
    if (this.#running === null && !this.#stopping.signal.aborted) this.#running = this.#live();
  }

  /** Hands everything over in good order; what is not finished within `graceMs` is given up. */
  async stop(graceMs: number): Promise<void> {
    const { clock } = this.#options;
    this.#stopping.abort();
    const over = new AbortController();
    const grace = clock.sleep(graceMs, over.signal).then(async () => {
      if (over.signal.aborted) return;
      this.#tenure?.lose("it was stopped, and the time for that was over");
      // Whoever hangs in a call that is not answered is left behind.
      await clock.sleep(graceMs / 4, over.signal);
    });
    const graceful = Promise.all(this.#sessions.map((session) => session.stop())).then(() => this.#running);
    await Promise.race([graceful, grace]);
    over.abort();
  }

  /** The pipelines that it serves, or will once it has joined. */
  pipelines(): readonly string[] {
    return this.#options.pipelines.map(({ context }) => context.name);
  }

  sessions(): readonly Session[] {
    return this.#sessions;
  }

  async #live(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      const tenure = await this.#join();
      if (tenure === null) return;
      this.#tenure = tenure;
      if (this.#stopping.signal.aborted) await this.#leave(tenure);
      else await this.#serve(tenure);
    }
  }

  /** Null when stopped before it succeeded. */
  async #join(): Promise<Tenure | null> {
    const { clock, events, membership, name, random, timing } = this.#options;
    let pauseMs = timing.backoffInitialMs;
    while (!this.#stopping.signal.aborted) {
      const id = random.uuid();
      const sent = sentAt(clock);
      try {
        await membership.join({ id, name, leaseMs: timing.leaseMs, ...this.#served() });
        const tenure = new Tenure(id, clock, timing, sent);
        events.emit("InstanceJoined", { instance: id });
        return tenure;
      } catch (error) {
        this.#tellAll(error);
        await clock.sleep(pauseMs * (0.5 + random.next()), this.#stopping.signal);
        pauseMs = Math.min(timing.backoffMaxMs, pauseMs * 2);
      }
    }
    return null;
  }

  /** What everybody is told of this instance. */
  #served(): Pick<Joining, "pipelines" | "takes" | "service" | "ends"> {
    const { addresses, pipelines, service } = this.#options;
    const contexts = pipelines.map(({ context }) => context);
    const ends = contexts.flatMap(({ destination, name }) => {
      const address = addresses[destination.name];
      return address === undefined ? [] : [[name, address] as const];
    });
    return {
      pipelines: contexts.map(({ name }) => name),
      takes: Object.fromEntries(contexts.map((context) => [context.name, takenBy(context)])),
      ...(service === undefined ? {} : { service }),
      ends: Object.fromEntries(ends),
    };
  }

  async #serve(tenure: Tenure): Promise<void> {
    const { clock, events, membership, pipelines, timing } = this.#options;
    this.#sessions = pipelines.map(({ context, retentionMs }) => new Session(context, tenure, retentionMs));
    const onReaped = () => {
      for (const session of this.#sessions) session.balanceSoon();
    };
    const reaper = createReaper({ membership, timing, clock, events, onReaped });
    reaper.start();
    const heartbeat = this.#beat(tenure);
    await Promise.all(this.#sessions.map((session) => session.run()));
    await Promise.all(this.#sessions.map((session) => (tenure.isAlive() ? session.stop() : session.abandon())));
    if (this.#stopping.signal.aborted) await Promise.all(this.#sessions.map((session) => session.releaseRest()));
    void reaper.stop();
    if (tenure.isAlive()) await this.#leave(tenure);
    else events.emit("InstanceLost", { instance: tenure.id, reason: tenure.reason });
    await heartbeat;
    await reaper.stop();
  }

  async #leave(tenure: Tenure): Promise<void> {
    try {
      await untilAborted(this.#options.membership.leave(tenure.id), tenure.signal);
    } catch (error) {
      // Not told in good order: the others find out when the lease ends. The lanes are released already.
      this.#tellAll(error);
    }
    tenure.lose("it left");
  }

  async #beat(tenure: Tenure): Promise<void> {
    const { clock, membership, timing } = this.#options;
    const everyMs = timing.leaseMs / RENEWALS_PER_LEASE;
    let pauseMs = everyMs;
    for (;;) {
      await clock.sleep(pauseMs, tenure.signal);
      if (!tenure.isAlive()) return;
      const sent = sentAt(clock);
      try {
        const alive = await untilAborted(membership.renew(tenure.id, timing.leaseMs), tenure.signal);
        if (alive === undefined) return;
        if (alive) tenure.renewed(sent);
        else tenure.lose("another instance took this one for dead");
        pauseMs = everyMs;
      } catch (error) {
        this.#tellAll(error);
        pauseMs = Math.min(everyMs, timing.backoffInitialMs * 4);
      }
    }
  }

  #tellAll(error: unknown): void {
    const code = isRelayError(error) ? error.code : "DATABASE_UNREACHABLE";
    const told = { code, reason: reasonOf(error), stack: stackOf(error) };
    for (const { context } of this.#options.pipelines) {
      this.#options.events.emit("SourceBroken", { pipeline: context.name, ...told });
    }
  }
}

function takenBy({ destination, routes }: PipelineContext): TypeFilter {
  return routes.filterFor(destination.name);
}
