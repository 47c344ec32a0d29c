import { displayTable, type TableName } from "../../../postgres/identifiers.ts";
import { WakeUpListener } from "../../../postgres/managed/wake-up-listener.ts";
import type { Database } from "../../../postgres/pool.ts";

/**
 * After a delivery the relay stays awake for this long: arming the notification at every pause would make the writers
 * send one each time.
 */
const AWAKE_MS = 50;

const shared = new WeakMap<Database, Map<string, { readonly wakeUp: WakeUp; users: number }>>();

/** The table's shared instance, and how to release it. */
export function joinWakeUp(database: Database, table: TableName): { readonly wakeUp: WakeUp; leave(): Promise<void> } {
  const tables = shared.get(database) ?? new Map<string, { wakeUp: WakeUp; users: number }>();
  shared.set(database, tables);
  const name = displayTable(table);
  const entry = tables.get(name) ?? { wakeUp: new WakeUp(database, table), users: 0 };
  tables.set(name, entry);
  entry.users += 1;
  return {
    wakeUp: entry.wakeUp,
    async leave() {
      entry.users -= 1;
      if (entry.users > 0) return;
      if (tables.get(name) === entry) tables.delete(name);
      await entry.wakeUp.close();
    },
  };
}

/**
 * Lets all stores of one table wait for the same notification. It is armed while all of them are idle; a store that
 * finds something wakes the others, since they read the same log.
 */
export class WakeUp {
  readonly #listener: WakeUpListener;
  readonly #sleepers = new Set<() => void>();
  #busyAtMs = Number.NEGATIVE_INFINITY;
  #isArmed = false;

  constructor(database: Database, table: TableName) {
    this.#listener = new WakeUpListener(database, table, () => this.#onNotified());
  }

  watch(onNews: () => void): () => void {
    this.#sleepers.add(onNews);
    return () => this.#sleepers.delete(onNews);
  }

  /**
   * Call this when nothing was found. True: the notification has just been armed, and only a second look can show that
   * nothing was written before.
   */
  async rest(): Promise<boolean> {
    if (this.#isArmed || performance.now() - this.#busyAtMs < AWAKE_MS) return false;
    this.#isArmed = await this.#listener.arm();
    return this.#isArmed;
  }

  /** Call this when something was found. */
  busy(): void {
    this.#busyAtMs = performance.now();
    if (!this.#isArmed) return;
    this.#isArmed = false;
    void this.#listener.disarm();
    this.#wakeAll();
  }

  close(): Promise<void> {
    return this.#listener.close();
  }

  #onNotified(): void {
    this.#isArmed = false;
    this.#busyAtMs = performance.now();
    void this.#listener.disarm();
    this.#wakeAll();
  }

  #wakeAll(): void {
    for (const wake of [...this.#sleepers]) wake();
  }
}
