import type { Clock } from "../core/clock.ts";
import type { Timing } from "../core/limits.ts";
import type { Destination } from "./destination.ts";
import type { Instance } from "./instance.ts";
import type { Session } from "./session.ts";

/** What a drain left undelivered. */
export interface DrainReport {
  readonly deadLetters: number;
  /** Failed events that the relay will retry. */
  readonly retrying: number;
  /** Destinations that take nothing at present. */
  readonly unreachable: readonly string[];
  /** Topics that take nothing at present; their events wait. */
  readonly blockedTopics: readonly string[];
  /** Pending events in lanes of other instances, which may be alive or dead. */
  readonly elsewhere: number;
  /** Pipelines whose source or ledger could not be used; their backlog is unknown. */
  readonly broken: readonly string[];
  /** Pipelines that an operator has paused, with their pending events; -1 where they could not be counted. */
  readonly paused: readonly { readonly pipeline: string; readonly waiting: number }[];
}

interface DrainParts {
  readonly clock: Clock;
  readonly timing: Timing;
  readonly instances: readonly Instance[];
  readonly destinations: readonly Destination[];
}

const CHECK_MS = 10;
/** Resolves when every pending event is delivered, held, or cannot reach its destination. */
export async function drained({ clock, timing, instances, destinations }: DrainParts): Promise<DrainReport> {
  const startedMs = clock.monotonicMs();
  const brokenMs = 2 * timing.backoffMaxMs;
  // An instance that has just died counts as alive until its lease ends.
  const leaseMs = 1.5 * timing.leaseMs;
  for (const session of instances.flatMap((instance) => instance.sessions())) session.expectEvents();
  for (;;) {
    const elapsedMs = clock.monotonicMs() - startedMs;
    const sessions = instances.flatMap((instance) => instance.sessions());
    const absent = instances.filter((instance) => instance.sessions().length === 0);
    const unreachable = destinations.filter((destination) => destination.isUnreachable);
    const broken = sessions.filter((session) => session.isBrokenFor(brokenMs));
    const paused = sessions.filter((session) => session.isPaused);
    const isAble = (it: Session) => !unreachable.includes(it.destination) && !broken.includes(it);
    const able = sessions.filter(isAble);
    // A destination with an open circuit that still counts as reachable is still probing, so the drain waits for it.
    const isQuiet = (it: Session) => it.isAtRest && !it.destination.isOpen;
    const isAtRest = able.every(isQuiet) && (absent.length === 0 || elapsedMs >= brokenMs);
    const elsewhere = isAtRest ? await waitingElsewhere(able.filter((it) => !it.isPaused)) : 0;
    if (isAtRest && (elsewhere === 0 || elapsedMs >= leaseMs)) {
      const holds = sessions.flatMap((session) => session.lanes().map((lane) => lane.holds.count()));
      return {
        deadLetters: holds.reduce((sum, count) => sum + count.dead, 0),
        retrying: holds.reduce((sum, count) => sum + count.retrying, 0),
        unreachable: unreachable.map((destination) => destination.name),
        blockedTopics: destinations.flatMap((destination) => destination.openTopics()),
        elsewhere,
        broken: [...broken.map((session) => session.name), ...absent.flatMap((instance) => instance.pipelines())],
        paused: await Promise.all(paused.map(waitingIn)),
      };
    }
    await clock.sleep(elsewhere > 0 ? timing.pollIntervalMs : CHECK_MS);
  }
}

async function waitingIn(session: Session): Promise<DrainReport["paused"][number]> {
  return { pipeline: session.name, waiting: await session.waiting().catch(() => -1) };
}

/** The pending events of pipelines that other instances share, without those that this instance holds. */
async function waitingElsewhere(sessions: readonly Session[]): Promise<number> {
  const counts = sessions
    .filter((session) => session.isShared)
    .map(async (session) => {
      const held = session.lanes().reduce((sum, lane) => sum + lane.holds.count().retrying, 0);
      // Count at least one: a source that does not answer now is soon reported as broken.
      const pending = await session.waiting().catch(() => 1);
      return Math.max(0, pending - held);
    });
  return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
}
