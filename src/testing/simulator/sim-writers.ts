import type { NewMemoryEvent } from "../../sources/memory/memory-database.ts";
import type { EventFates } from "./event-fates.ts";
import type { World } from "./port-call.ts";
import { type EventPlan, PAYLOAD_BYTES_MAX, type WritePlan } from "./scenario.ts";

/**
 * The application. A transaction locks its keys until it commits, like an application that locks its aggregates. So within a
 * key, and only there, events commit in the order of writing.
 */
export class SimWriters {
  readonly #world: World;
  readonly #fates: EventFates;
  readonly #lockedKeys = new Set<string>();
  #waiting: WritePlan[] = [];
  #open = 0;
  #contents = 0;

  constructor(world: World, fates: EventFates) {
    this.#world = world;
    this.#fates = fates;
  }

  /** True if all transactions planned so far are committed or refused. */
  get isDone(): boolean {
    return this.#open === 0 && this.#waiting.length === 0;
  }

  start(plan: WritePlan): void {
    const keys = keysOf(plan);
    if (keys.some((key) => this.#lockedKeys.has(key))) {
      this.#waiting.push(plan);
      return;
    }
    const { database, faults, time } = this.#world;
    for (const key of keys) this.#lockedKeys.add(key);
    if (plan.commitsAfterMs > LATE_MS) faults.count("late writer");
    this.#open += 1;
    const { incarnation } = database;
    const sequences = plan.events.map(() => database.model.reserve());
    time.after(plan.commitsAfterMs, () => this.#end(plan, sequences, incarnation));
  }

  /** Losing the connections rolls open transactions back: their events never existed. */
  #end(plan: WritePlan, sequences: readonly number[], incarnation: number): void {
    const { database } = this.#world;
    this.#open -= 1;
    if (database.isUp && database.incarnation === incarnation) this.#commit(plan, sequences);
    for (const key of keysOf(plan)) this.#lockedKeys.delete(key);
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const next of waiting) this.start(next);
  }

  #commit(plan: WritePlan, sequences: readonly number[]): void {
    const { database, history, time, faults } = this.#world;
    const rows = plan.events.map((event) => this.#rowOf(event));
    const inserted = new Set(database.model.insert(rows, sequences));
    for (const [index, { id, key, type, fate }] of plan.events.entries()) {
      if (!inserted.has(id)) continue;
      const content = rows[index]!.payload as string;
      this.#fates.set(content, fate);
      if (fate.kind === "unreadable" || fate.kind === "too large") faults.count(fate.kind);
      const sequence = sequences[index]!;
      history.written.push({ id, key, type, content, sequence, committedAtMs: time.nowMs, gone: null, fate });
      history.note("writer", `wrote ${id} of ${key} (${type}, ${fate.kind})`);
    }
  }

  #wideColumn({ bytes, column }: NonNullable<EventPlan["wide"]>): Partial<NewMemoryEvent> {
    this.#world.faults.count("wide row");
    const text = "w".repeat(bytes);
    return column === "headers" ? { headers: { wide: text } } : { correlationId: text };
  }

  #rowOf({ id, key, type, fate, wide }: EventPlan): NewMemoryEvent {
    this.#contents += 1;
    const content = `${id}/${this.#contents}`;
    const payload = fate.kind === "too large" ? content.padEnd(PAYLOAD_BYTES_MAX + 1, ".") : content;
    const row = { id, key, type, payload, ...(wide === undefined ? {} : this.#wideColumn(wide)) };
    return fate.kind === "unreadable" ? { ...row, unreadable: `${id} is no event` } : row;
  }
}

const LATE_MS = 10;

function keysOf(plan: WritePlan): string[] {
  return [...new Set(plan.events.flatMap(({ key }) => (key === null ? [] : [key])))];
}
