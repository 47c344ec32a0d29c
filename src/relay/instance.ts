import { Backoff } from "../core/backoff.ts";
import type { Clock, Random } from "../core/clock.ts";
import { isRelayError, reasonOf, stackOf } from "../core/errors.ts";
import type { Timing } from "../core/limits.ts";
import type { Joining, Membership } from "../ports/membership.ts";
import type { TypeFilter } from "../ports/queue-store.ts";
import type { TechnicalEvents } from "../ports/technical-events.ts";
import type { PipelineContext } from "./context.ts";
import { InstanceLease, sentAt } from "./instance-lease.ts";
import { createReaper } from "./reaper.ts";
import { Session } from "./session.ts";
import { untilAborted } from "./until-aborted.ts";

/** Renewals per lease: two may fail before the lease ends. */
const RENEWALS_PER_LEASE = 3;

interface InstanceOptions {
  readonly name: string;
  readonly service: string | undefined;
  /** The address of each destination, for people. */
  readonly addresses: ReadonlyMap<string, string | undefined>;
  readonly membership: Membership;
  readonly pipelines: readonly { readonly context: PipelineContext; readonly retentionMs: number | null }[];
  readonly timing: Timing;
  readonly clock: Clock;
  readonly random: Random;
  readonly events: TechnicalEvents;
}

/**
 * This process as a member of one database: it joins, sends its heartbeat and serves its pipelines. When it loses its
 * lease, it gives up everything that it owned and joins again under a new id: the old id may have been fenced already.
 */
export class Instance {
  readonly #options: InstanceOptions;
  readonly #stopping = new AbortController();
  #sessions: Session[] = [];
  #lease: InstanceLease | null = null;
  #running: Promise<void> | null = null;

  constructor(options: InstanceOptions) {
    this.#options = options;
  }

  /** Joins in the background. Legal to repeat; no effect after a stop. */
  start(): void {
    if (this.#running === null && !this.#stopping.signal.aborted) this.#running = this.#live();
  }

  /** Finishes what is in flight and releases the lanes; gives up what is not finished within `graceMs`. */
  async stop(graceMs: number): Promise<void> {
    const { clock } = this.#options;
    this.#stopping.abort();
    const over = new AbortController();
    const grace = clock.sleep(graceMs, over.signal).then(async () => {
      if (over.signal.aborted) return;
      this.#lease?.lose("the relay was stopped, and its work did not finish in the grace period");
      // A call that is never answered must not keep the process from ending.
      await clock.sleep(graceMs / 4, over.signal);
    });
    const graceful = Promise.all(this.#sessions.map((session) => session.stop())).then(() => this.#running);
    await Promise.race([graceful, grace]);
    over.abort();
  }

  /** The pipelines that this instance serves, or will serve once it has joined. */
  pipelines(): readonly string[] {
    return this.#options.pipelines.map(({ context }) => context.name);
  }

  /** One session per pipeline; none while the instance has not joined. */
  sessions(): readonly Session[] {
    return this.#sessions;
  }

  /** Each iteration is one lease. */
  async #live(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      const lease = await this.#join();
      if (lease === null) return;
      this.#lease = lease;
      if (this.#stopping.signal.aborted) await this.#leave(lease);
      else await this.#serve(lease);
    }
  }

  /** Retries until it has joined. Null when it was stopped first. */
  async #join(): Promise<InstanceLease | null> {
    const { clock, events, membership, name, random, timing } = this.#options;
    const backoff = new Backoff({ firstMs: timing.backoffInitialMs, lastMs: timing.backoffMaxMs });
    while (!this.#stopping.signal.aborted) {
      const id = random.uuid();
      const sent = sentAt(clock);
      try {
        await membership.join({ id, name, leaseMs: timing.leaseMs, ...this.#served() });
        const lease = new InstanceLease(id, clock, timing, sent);
        events.emit("InstanceJoined", { instance: id });
        return lease;
      } catch (error) {
        this.#reportToAll(error);
        await clock.sleep(backoff.nextMs() * (0.5 + random.next()), this.#stopping.signal);
      }
    }
    return null;
  }

  /** What other instances can read about this one. */
  #served(): Pick<Joining, "pipelines" | "takes" | "service" | "ends"> {
    const { addresses, pipelines, service } = this.#options;
    const contexts = pipelines.map(({ context }) => context);
    const ends = contexts.flatMap(({ destination, name }) => {
      const address = addresses.get(destination.name);
      return address === undefined ? [] : [[name, address] as const];
    });
    return {
      pipelines: contexts.map(({ name }) => name),
      takes: Object.fromEntries(contexts.map((context) => [context.name, takenBy(context)])),
      ...(service === undefined ? {} : { service }),
      ends: Object.fromEntries(ends),
    };
  }

  async #serve(lease: InstanceLease): Promise<void> {
    const { clock, events, membership, pipelines, timing } = this.#options;
    this.#sessions = pipelines.map(({ context, retentionMs }) => new Session(context, lease, retentionMs));
    const onReaped = () => {
      for (const session of this.#sessions) session.balanceSoon();
    };
    const reaper = createReaper({ membership, timing, clock, events, onReaped });
    reaper.start();
    const heartbeat = this.#heartbeat(lease);
    await Promise.all(this.#sessions.map((session) => session.run()));
    await Promise.all(this.#sessions.map((session) => (lease.isAlive() ? session.stop() : session.abandon())));
    if (this.#stopping.signal.aborted) await Promise.all(this.#sessions.map((session) => session.releaseRest()));
    void reaper.stop();
    if (lease.isAlive()) await this.#leave(lease);
    else events.emit("InstanceLost", { instance: lease.id, reason: lease.reason });
    await heartbeat;
    await reaper.stop();
  }

  async #leave(lease: InstanceLease): Promise<void> {
    try {
      await untilAborted(this.#options.membership.leave(lease.id), lease.signal);
    } catch (error) {
      // The others find out when the lease ends. The lanes are released already, so nothing waits for that.
      this.#reportToAll(error);
    }
    lease.lose("the instance left");
  }

  /**
   * Renews the lease. After an error it retries sooner, so that a short outage of the database does not cost the lease.
   */
  async #heartbeat(lease: InstanceLease): Promise<void> {
    const { clock, membership, timing } = this.#options;
    const everyMs = timing.leaseMs / RENEWALS_PER_LEASE;
    let pauseMs = everyMs;
    for (;;) {
      await clock.sleep(pauseMs, lease.signal);
      if (!lease.isAlive()) return;
      const sent = sentAt(clock);
      try {
        const alive = await untilAborted(membership.renew(lease.id, timing.leaseMs), lease.signal);
        if (alive === undefined) return;
        if (alive) lease.renewed(sent);
        else lease.lose("another instance found this one's lease expired");
        pauseMs = everyMs;
      } catch (error) {
        this.#reportToAll(error);
        pauseMs = Math.min(everyMs, timing.backoffInitialMs * 4);
      }
    }
  }

  #reportToAll(error: unknown): void {
    const code = isRelayError(error) ? error.code : "DATABASE_UNREACHABLE";
    const report = { code, reason: reasonOf(error), stack: stackOf(error) };
    for (const { context } of this.#options.pipelines) {
      this.#options.events.emit("SourceBroken", { pipeline: context.name, ...report });
    }
  }
}

function takenBy({ destination, routes }: PipelineContext): TypeFilter {
  return routes.filterFor(destination.name);
}
