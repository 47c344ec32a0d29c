import { displayTable, type TableName } from "../../../postgres/identifiers.ts";
import { Doorbell } from "../../../postgres/managed/doorbell.ts";
import type { Database } from "../../../postgres/pool.ts";

/** Whoever delivered a moment ago stays awake: going to sleep at every pause would make the writers ring each time. */
const AWAKE_MS = 50;

const shared = new WeakMap<Database, Map<string, { readonly wakeUp: WakeUp; users: number }>>();

/** The one for this table, whoever else uses it, and how to let it go. */
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
 * Lets all stores of one table sleep at one doorbell. It is armed while none of them is awake; the one that is wakes
 * the others, since they read the same log.
 */
export class WakeUp {
  readonly #bell: Doorbell;
  readonly #sleepers = new Set<() => void>();
  #busyAtMs = Number.NEGATIVE_INFINITY;
  #isArmed = false;

  constructor(database: Database, table: TableName) {
    this.#bell = new Doorbell(database, table, () => this.#ring());
  }

  watch(onNews: () => void): () => void {
    this.#sleepers.add(onNews);
    return () => this.#sleepers.delete(onNews);
  }

  /** Nothing was found. True: the bell has just been armed, and only a second look tells that nothing came before. */
  async rest(): Promise<boolean> {
    if (this.#isArmed || performance.now() - this.#busyAtMs < AWAKE_MS) return false;
    this.#isArmed = await this.#bell.arm();
    return this.#isArmed;
  }

  /** Something was found. */
  busy(): void {
    this.#busyAtMs = performance.now();
    if (!this.#isArmed) return;
    this.#isArmed = false;
    void this.#bell.disarm();
    this.#wakeAll();
  }

  close(): Promise<void> {
    return this.#bell.close();
  }

  #ring(): void {
    this.#isArmed = false;
    this.#busyAtMs = performance.now();
    void this.#bell.disarm();
    this.#wakeAll();
  }

  #wakeAll(): void {
    for (const wake of [...this.#sleepers]) wake();
  }
}
