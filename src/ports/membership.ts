import type { TypeFilter } from "./queue-store.ts";

/**
 * The list of living instances: one row per process and database. An implementation uses a connection of its own, so
 * that the heartbeat never waits behind other work, and only the database's clock. A lane belongs to a living instance
 * or has no owner.
 */
export interface Membership {
  /** Equal for all sources in one database: they share one heartbeat. */
  readonly databaseId: string;

  /** Adds the instance with a lease of `leaseMs`. The id must be new: an id that was used before never returns. */
  join(instance: Joining): Promise<void>;

  /**
   * Renews the lease, counted from now. False when the row is gone or has expired: the instance has lost everything
   * that it owned and must join again under a new id.
   */
  renew(id: string, leaseMs: number): Promise<boolean>;

  /**
   * Deletes the rows of expired instances, and of those whose expiry is impossibly far away (the clock stepped back).
   * Returns their ids. When several callers reap at once, exactly one gets each id.
   */
  reap(): Promise<string[]>;

  /** Deletes the row. The caller must have released its lanes before. Leaving twice is legal. */
  leave(id: string): Promise<void>;
}

/** What an instance writes into the list when it joins. */
export interface Joining {
  readonly id: string;
  /** For people: host name and process id. */
  readonly name: string;
  readonly leaseMs: number;
  /** The names of the pipelines that the instance serves. */
  readonly pipelines: readonly string[];
  /**
   * The types that each pipeline takes, by its name. Every instance can read them while this one lives. Absent:
   * unknown.
   */
  readonly takes?: Readonly<Record<string, TypeFilter>>;
  /** The deployment that the instance belongs to. Absent: it counts as part of every deployment. */
  readonly service?: string;
  /** The destination's address of each pipeline, by its name, for people. */
  readonly ends?: Readonly<Record<string, string>>;
}
