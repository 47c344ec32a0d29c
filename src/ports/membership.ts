import type { TypeFilter } from "./queue-store.ts";

/**
 * Who is alive. One row per process and database, on a connection of its own; all times are the database's. A lane
 * belongs to a living instance or to nobody.
 */
export interface Membership {
  /** Equal for all sources of one database: they share one heartbeat. */
  readonly databaseId: string;

  /** Adds a row under this id, which was never used before, alive for the lease. `pipelines` are those it serves. */
  join(instance: Joining): Promise<void>;

  /**
   * Prolongs the life by the lease. False when the row is gone or has expired: then everything that the instance
   * owned is lost, and it never comes back under this id.
   */
  renew(id: string, leaseMs: number): Promise<boolean>;

  /**
   * Deletes the rows of expired instances, and of those whose expiry is impossibly far away (the clock stepped back).
   * Of several callers exactly one gets an id.
   */
  reap(): Promise<string[]>;

  /** Deletes the row; its lanes must have been released before. Leaving twice is legal. */
  leave(id: string): Promise<void>;
}

export interface Joining {
  readonly id: string;
  /** For people: host and process. */
  readonly name: string;
  readonly leaseMs: number;
  readonly pipelines: readonly string[];
  /** What each of them takes, by its name, for everybody to see as long as the instance lives. Absent: nobody knows. */
  readonly takes?: Readonly<Record<string, TypeFilter>>;
  /** The deployment it belongs to. Absent: nobody says, and it counts as the same as every other. */
  readonly service?: string;
  /** Where each of them leads, by its name, for people. */
  readonly ends?: Readonly<Record<string, string>>;
}
