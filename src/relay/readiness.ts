import { RelayError } from "../core/errors.ts";
import type { Instance } from "./instance.ts";
import type { Session } from "./session.ts";
import type { TechnicalEventBus } from "./technical-event-bus.ts";

/** A pipeline that does not deliver at present, and why. */
export interface UnreadyPipeline {
  readonly pipeline: string;
  readonly reason: string;
}

/** What the pipeline waits for; null when every lane is served, by this instance or by another one. */
function unreadyReason(session: Session): string | null {
  const { unserved } = session;
  if (!session.isAlive()) return "the instance lost its lease and joins again";
  if (session.isBrokenFor(0)) return "its source or its ledger cannot be used";
  if (unserved === Number.POSITIVE_INFINITY) return "its source has not been read yet";
  if (unserved > 0) return `${unserved} of its lanes have no owner yet`;
  const opening = session.lanes().filter((lane) => !lane.isOpen && !lane.isLeaving).length;
  return opening > 0 ? `${opening} of its lanes wait for what their former owner delivered` : null;
}

const NOT_JOINED = "the instance has not joined its database yet";

/** Finds out when a relay has connected, found its tables and taken its lanes. */
export class Readiness {
  /** Rejects with RELAY_STOPPED when the relay stops first. */
  readonly ready: Promise<void>;
  readonly #instances: readonly Instance[];
  /** The newest error of each pipeline that has not recovered since. */
  readonly #errors = new Map<string, string>();
  readonly #settle: Pick<PromiseWithResolvers<void>, "resolve" | "reject">;
  readonly #unsubscribe: readonly (() => void)[];
  #phase: "new" | "started" | "stopped" = "new";

  constructor(instances: readonly Instance[], events: TechnicalEventBus) {
    const { promise, ...settle } = Promise.withResolvers<void>();
    this.ready = promise;
    this.#settle = settle;
    this.#instances = instances;
    // A program that never waits for it must not end by its rejection.
    promise.catch(() => undefined);
    events.on("SourceBroken", ({ pipeline, reason }) => void this.#errors.set(pipeline, reason));
    events.on("SourceRecovered", ({ pipeline }) => void this.#errors.delete(pipeline));
    // Every survey and every look for events is followed by one of these.
    const check = () => this.#check();
    this.#unsubscribe = [events.on("SourceAnswered", check), events.on("SourceRecovered", check)];
  }

  started(): void {
    if (this.#phase === "new") this.#phase = "started";
  }

  /** Call it when the stop begins; the returned function when it is over. */
  stopping(): () => void {
    const unready = this.unready();
    this.#phase = "stopped";
    return () => this.#settled(() => this.#settle.reject(stoppedBeforeReady(unready)));
  }

  /** The pipelines that do not deliver now, also after the relay was ready. */
  unready(): readonly UnreadyPipeline[] {
    return this.#instances.flatMap((instance) => {
      const sessions = new Map(instance.sessions().map((session) => [session.name, session]));
      return instance.pipelines().flatMap((pipeline) => {
        const session = sessions.get(pipeline);
        const waitsFor = session === undefined ? NOT_JOINED : unreadyReason(session);
        const reason = this.#notRunning ?? (waitsFor === null ? null : (this.#errors.get(pipeline) ?? waitsFor));
        return reason === null ? [] : [{ pipeline, reason }];
      });
    });
  }

  get #notRunning(): string | null {
    if (this.#phase === "started") return null;
    return this.#phase === "new" ? "the relay was not started" : "the relay was stopped";
  }

  #check(): void {
    if (this.#phase === "started" && this.unready().length === 0) this.#settled(this.#settle.resolve);
  }

  #settled(settle: () => void): void {
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
    settle();
  }
}

const NAMED_MAX = 5;

function stoppedBeforeReady(unready: readonly UnreadyPipeline[]): RelayError {
  const named = unready.slice(0, NAMED_MAX).map(({ pipeline, reason }) => `${pipeline}: ${reason}`);
  const more = unready.length > NAMED_MAX ? `; and ${unready.length - NAMED_MAX} more` : "";
  return new RelayError("RELAY_STOPPED", `The relay was stopped before it was ready: ${named.join("; ")}${more}.`);
}
