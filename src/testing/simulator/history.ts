import type { Message } from "../../core/event.ts";
import type { Outcome } from "../../core/outcome.ts";
import type { Fate } from "./scenario.ts";
import type { VirtualTime } from "./virtual-clock.ts";

interface Arrival {
  readonly id: string;
  readonly key: string | null;
  /** Distinguishes two events with the same id, which a failover can cause. */
  readonly content: string;
  readonly destination: string;
  readonly process: string;
  readonly atMs: number;
}

/** A message that a process sent, with the answer that it got. */
export interface Send {
  readonly id: string;
  readonly key: string | null;
  readonly content: string;
  readonly process: string;
  readonly sentAtMs: number;
  arrived: boolean;
  /** Null while the process has no answer. */
  answer: { readonly kind: string; readonly reason: string; readonly afterMs: number; readonly atMs: number } | null;
}

export interface Written {
  readonly id: string;
  readonly key: string | null;
  readonly type: string;
  readonly content: string;
  readonly sequence: number;
  readonly committedAtMs: number;
  readonly fate: Fate;
  /** Lost in a failover, or deleted or marked by another program. */
  gone: "lost" | "deleted" | "marked" | null;
}

/** A fault that may cause duplicates: for one process, or for all if null. */
export interface Disturbance {
  readonly process: string | null;
  readonly what: string;
  readonly atMs: number;
  /** A paused process can cause duplicates once it continues. */
  readonly untilMs: number;
}

export interface LaneWrite {
  readonly pipeline: string;
  readonly lane: number;
  readonly epoch: bigint;
  readonly owner: string;
  readonly kind: "takeOver" | "settle";
  readonly atMs: number;
}

/** The history of one simulation, observed outside of the engine. */
export class History {
  readonly arrivals: Arrival[] = [];
  readonly sends: Send[] = [];
  readonly written: Written[] = [];
  readonly disturbances: Disturbance[] = [];
  readonly laneWrites: LaneWrite[] = [];
  /** When events were durably marked as delivered, by id. */
  readonly settled = new Map<string, number[]>();
  /** The highest batch that was ever settled, by pipeline and lane. A failover may have lost it since. */
  readonly settledBatches = new Map<string, bigint>();
  /** Violations during the run; the checks at the end add theirs. */
  readonly violations: string[] = [];
  /** Keys of events whose dead letter or deletion a failover lost: these may be delivered after later events. */
  readonly revivedKeys = new Set<string>();
  /** Keys with events whose available time is in the future because the clock stepped back. */
  readonly untimelyKeys = new Set<string>();
  /** Contents of events that another program marked at any time. */
  readonly marked = new Set<string>();
  /** Contents of dead events that an operator replayed: they arrive late, and their failures are counted from zero. */
  readonly replayed = new Set<string>();
  readonly lines: string[] | null;
  calls = 0;
  #hash = 0;
  #callsAtOnce = 0;
  #callsAtMs = -1;
  readonly #time: VirtualTime;

  constructor(time: VirtualTime, verbose: boolean) {
    this.#time = time;
    this.lines = verbose ? [] : null;
  }

  get hash(): string {
    return (this.#hash >>> 0).toString(16).padStart(8, "0");
  }

  note(who: string, what: string): void {
    this.#hash = hashText(this.#hash, who, this.#time.nowMs, what);
    this.lines?.push(`${this.#time.nowMs.toFixed(2).padStart(10)}  ${who.padEnd(8)} ${what}`);
  }

  violate(invariant: string, what: string): void {
    this.note("CHECK", `${invariant}: ${what}`);
    this.violations.push(`${invariant}: ${what}`);
  }

  disturb(process: string | null, what: string, forMs = 0): void {
    const { nowMs } = this.#time;
    this.disturbances.push({ process, what, atMs: nowMs, untilMs: nowMs + forMs });
  }

  /** Another program deleted or marked the row. */
  takeAway(event: Written, how: "deleted" | "marked"): void {
    event.gone = how;
    if (how === "marked") this.marked.add(event.content);
  }

  /** A message leaves a process. */
  sent(message: Message, process: string): Send {
    const { id, key } = message.event;
    const content = message.payload.toString("latin1");
    const send: Send = { id, key, content, process, sentAtMs: this.#time.nowMs, arrived: false, answer: null };
    this.sends.push(send);
    return send;
  }

  /** The process gets the answer. `isOutOfTurn`: earlier messages of its key are in the same transaction, so it does not count. */
  answered(send: Send, outcome: Outcome, isOutOfTurn = false): void {
    const reason = outcome.kind === "delivered" || outcome.kind === "skipped" ? "" : outcome.reason;
    const said = outcome.kind === "retry" ? `retry ${outcome.scope}` : outcome.kind;
    const kind = isOutOfTurn ? `out of turn: ${said}` : said;
    const afterMs = outcome.kind === "retry" ? (outcome.afterMs ?? 0) : 0;
    send.answer = { kind, reason, afterMs, atMs: this.#time.nowMs };
    this.note(send.process, `answered ${kind} for ${send.id}`);
  }

  /** Records a settled batch of a lane, named by pipeline and number. */
  settleBatch(lane: string, batch: bigint): void {
    if (batch > (this.settledBatches.get(lane) ?? 0n)) this.settledBatches.set(lane, batch);
  }

  settle(ids: readonly string[]): void {
    for (const id of ids) this.settled.set(id, [...(this.settled.get(id) ?? []), this.#time.nowMs]);
  }

  /** True if the engine makes endless calls without letting time pass. */
  isSpinning(): boolean {
    this.calls += 1;
    this.#callsAtOnce = this.#callsAtMs === this.#time.nowMs ? this.#callsAtOnce + 1 : 0;
    this.#callsAtMs = this.#time.nowMs;
    if (this.#callsAtOnce < CALLS_AT_ONCE_MAX) return false;
    if (this.#callsAtOnce === CALLS_AT_ONCE_MAX) this.violate("hot loop", "endless calls without time passing");
    return true;
  }
}

const CALLS_AT_ONCE_MAX = 5_000;

/** FNV-1a over the parts of a line: cheap enough for every line of every seed. */
function hashText(hash: number, who: string, atMs: number, what: string): number {
  let next = hash ^ Math.floor(atMs * 1_000);
  for (let index = 0; index < who.length; index += 1) next = Math.imul(next ^ who.charCodeAt(index), 0x01000193);
  for (let index = 0; index < what.length; index += 1) next = Math.imul(next ^ what.charCodeAt(index), 0x01000193);
  return next;
}
