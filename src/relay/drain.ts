import type { Clock } from "../core/clock.ts";
import type { Timing } from "../core/limits.ts";
import type { Destination } from "./destination.ts";
import type { Instance } from "./instance.ts";
import type { Session } from "./session.ts";

export interface DrainReport {
  readonly deadLetters: number;
  /** Failed events that will be tried again. */
  readonly retrying: number;
  /** Destinations that take nothing at present. */
  readonly unreachable: readonly string[];
  /** Topics that take nothing at present; their events wait. */
  readonly blockedTopics: readonly string[];
  /** Events that wait in lanes of other instances, which may be at work or dead. */
  readonly elsewhere: number;
  /** Pipelines whose source or ledger could not be used; what waits there is not known. */
  readonly broken: readonly string[];
  /** Pipelines that a person has stopped, with what waits there; -1 where nobody could count. */
  readonly paused: readonly { readonly pipeline: string; readonly waiting: number }[];
}

interface DrainParts {
  readonly clock: Clock;
  readonly timing: Timing;
  readonly instances: readonly Instance[];
  readonly destinations: readonly Destination[];
}

const LOOK_MS = 10;

/** Resolves when all that waits is delivered, held, or has no way to its destination. */
export async function drained({ clock, timing, instances, destinations }: DrainParts): Promise<DrainReport> {
  const startedMs = clock.monotonicMs();
  const patienceMs = 2 * timing.backoffMaxMs;
  // An instance that died a moment ago is taken for living until its lease is over.
  const leaseMs = 1.5 * timing.leaseMs;
  for (const session of instances.flatMap((instance) => instance.sessions())) session.expectEvents();
  for (;;) {
    const elapsedMs = clock.monotonicMs() - startedMs;
    const sessions = instances.flatMap((instance) => instance.sessions());
    const absent = instances.filter((instance) => instance.sessions().length === 0);
    const unreachable = destinations.filter((destination) => destination.isUnreachable);
    const broken = sessions.filter((session) => session.isBrokenFor(patienceMs));
    const paused = sessions.filter((session) => session.isPaused);
    const isAble = (it: Session) => !unreachable.includes(it.destination) && !broken.includes(it);
    const able = sessions.filter(isAble);
    // One that is closed and has not given up yet still finds out whether others get through.
    const isQuiet = (it: Session) => it.isAtRest && !it.destination.isOpen;
    const isAtRest = able.every(isQuiet) && (absent.length === 0 || elapsedMs >= patienceMs);
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
    await clock.sleep(elsewhere > 0 ? timing.pollIntervalMs : LOOK_MS);
  }
}

async function waitingIn(session: Session): Promise<DrainReport["paused"][number]> {
  return { pipeline: session.name, waiting: await session.waiting().catch(() => -1) };
}

/** What waits where others have lanes; what is held here is not meant. */
async function waitingElsewhere(sessions: readonly Session[]): Promise<number> {
  const counts = sessions
    .filter((session) => session.isShared)
    .map(async (session) => {
      const held = session.lanes().reduce((sum, lane) => sum + lane.holds.count().retrying, 0);
      // A source that cannot be asked now is found broken soon.
      const pending = await session.waiting().catch(() => 1);
      return Math.max(0, pending - held);
    });
  return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
}
