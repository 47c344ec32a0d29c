import type { SeededRandom } from "./seeded-random.ts";

/** A cancelled event stays in the heap and is dropped when its time comes. */
interface ScheduledEvent {
  readonly atMs: number;
  readonly tiebreak: number;
  readonly run: () => void;
  cancelled: boolean;
}

/** Times are multiples of a power of two, so that sums are exact and no wait ends too early by rounding. */
const GRID = 1_024;
/** Steps between two yields to Node's event loop, so that the worker can receive messages. */
const STEPS_BETWEEN_YIELDS = 2_000;

/**
 * Virtual time: a heap of events by (time, seeded tiebreak). It runs one event and all microtasks that follow from it, then
 * the next event, so a seed gives the same history every time.
 */
export class VirtualTime {
  nowMs = 0;
  steps = 0;
  readonly #heap: ScheduledEvent[] = [];
  readonly #random: SeededRandom;

  constructor(random: SeededRandom) {
    this.#random = random;
  }

  after(delayMs: number, run: () => void): ScheduledEvent {
    const atMs = this.nowMs + Math.ceil(Math.max(0, delayMs) * GRID) / GRID;
    const event = { atMs, tiebreak: this.#random.next(), run, cancelled: false };
    this.#heap.push(event);
    this.#rise(this.#heap.length - 1);
    return event;
  }

  /** Runs all events that are due until then. `isOver` ends it early. */
  async runUntil(endMs: number, isOver: () => boolean = () => false): Promise<void> {
    while (this.#heap.length > 0 && !isOver()) {
      if (this.#heap[0]!.atMs > endMs) break;
      const event = this.#pop();
      if (event.cancelled) continue;
      this.nowMs = event.atMs;
      this.steps += 1;
      event.run();
      await (this.steps % STEPS_BETWEEN_YIELDS === 0 ? turn() : settled());
    }
    this.nowMs = Math.max(this.nowMs, endMs);
  }

  #pop(): ScheduledEvent {
    const first = this.#heap[0]!;
    const last = this.#heap.pop()!;
    if (this.#heap.length > 0) {
      this.#heap[0] = last;
      this.#sink();
    }
    return first;
  }

  #rise(from: number): void {
    let index = from;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!isBefore(this.#heap[index]!, this.#heap[parent]!)) return;
      this.#swap(index, parent);
      index = parent;
    }
  }

  #sink(): void {
    let index = 0;
    for (;;) {
      let least = index;
      for (const child of [2 * index + 1, 2 * index + 2]) {
        if (child < this.#heap.length && isBefore(this.#heap[child]!, this.#heap[least]!)) least = child;
      }
      if (least === index) return;
      this.#swap(index, least);
      index = least;
    }
  }

  #swap(left: number, right: number): void {
    const event = this.#heap[left]!;
    this.#heap[left] = this.#heap[right]!;
    this.#heap[right] = event;
  }
}

function isBefore(left: ScheduledEvent, right: ScheduledEvent): boolean {
  return left.atMs < right.atMs || (left.atMs === right.atMs && left.tiebreak < right.tiebreak);
}

/**
 * Resolves when no microtask is left, however long their chain: Node runs the tick queue only when the microtask queue is
 * empty, and a tick that a microtask schedules waits for that. Needs no turn of the event loop.
 */
function settled(): Promise<void> {
  return new Promise((resolve) => queueMicrotask(() => process.nextTick(resolve)));
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
