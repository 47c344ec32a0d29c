import { ADOPTED, type PipelineSpec, type QueueSource, type QueueStore } from "../../ports/queue-store.ts";
import { MemoryDatabase, type MemoryDatabaseOptions, type NewMemoryEvent } from "./memory-database.ts";
import { MemoryMembership } from "./memory-membership.ts";
import { MemoryStore } from "./memory-store.ts";
import type { MemoryDeadLetter, MemoryEventRow, MemoryHoldRow } from "./memory-tables.ts";

/** Options of `memorySource`. */
export interface MemorySourceOptions extends MemoryDatabaseOptions {
  name?: string;
  /** Share one to let several relays, in the role of several processes, work on the same events. */
  database?: MemoryDatabase;
}

/** A source whose events live in this process: for tests, demos, and as the simulator's model of a database. */
export interface MemorySource extends QueueSource {
  readonly database: MemoryDatabase;
  /** Inserts the events in one transaction; an existing id changes nothing. Returns the new ids. */
  insert(...events: readonly NewMemoryEvent[]): string[];
  /** In the order of writing; includes events that are being delivered, held or parked. */
  pending(): MemoryEventRow[];
  delivered(): MemoryEventRow[];
  holds(): MemoryHoldRow[];
  deadLetters(): MemoryDeadLetter[];
  /** Puts a dead or delivered event back. */
  replay(id: string): boolean;
  /** The operator's decision to accept the current ledger of the destination, whatever it says. */
  adopt(): void;
}

/** Creates a source in memory. */
export function memorySource(options: MemorySourceOptions = {}): MemorySource {
  const { name = "memory", database = new MemoryDatabase(options) } = options;
  const { tables } = database;
  const membership = new MemoryMembership(database);
  return {
    name,
    database,
    membership,
    pipeline: (spec: PipelineSpec): QueueStore => new MemoryStore(database, spec),
    close: async () => {},
    insert: (...events) => database.insert(events),
    pending: () => bySequence([...tables.open.values()]),
    delivered: () => bySequence([...tables.closed.values()].filter(({ state }) => state === "DELIVERED")),
    holds: () => [...tables.pipelines.values()].flatMap(({ holds }) => [...holds.values()]),
    deadLetters: () => [...tables.deadLetters.values()],
    replay: (id) => database.replay(id),
    adopt: () => {
      for (const { lanes } of tables.pipelines.values()) {
        for (const row of lanes.values()) tables.put(lanes, row.lane, { ...row, ledgeredBatch: ADOPTED });
      }
    },
  };
}

function bySequence(rows: MemoryEventRow[]): MemoryEventRow[] {
  return rows.sort((left, right) => left.sequence - right.sequence);
}
