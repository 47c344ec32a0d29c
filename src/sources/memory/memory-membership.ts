import { RelayError } from "../../core/errors.ts";
import type { Joining, Membership } from "../../ports/membership.ts";
import type { MemoryDatabase } from "./memory-database.ts";
import type { MemoryInstanceRow } from "./memory-tables.ts";

/** Leases of instances in a `MemoryDatabase`. */
export class MemoryMembership implements Membership {
  readonly databaseId: string;
  readonly #database: MemoryDatabase;

  constructor(database: MemoryDatabase) {
    this.#database = database;
    this.databaseId = database.databaseId;
  }

  async join(joining: Joining): Promise<void> {
    const { id, name, leaseMs, pipelines, takes } = joining;
    const { tables } = this.#database;
    if (tables.instances.has(id)) throw new RelayError("DATABASE_REFUSED", `The instance ${id} exists already.`);
    const instance = { id, name, leaseMs, pipelines, takes, aliveUntilMs: this.#database.nowMs() + leaseMs };
    tables.commit(() => tables.put(tables.instances, id, instance));
  }

  async renew(id: string, leaseMs: number): Promise<boolean> {
    const { tables } = this.#database;
    const nowMs = this.#database.nowMs();
    const instance = tables.instances.get(id);
    if (instance === undefined || instance.aliveUntilMs <= nowMs) return false;
    tables.commit(() => tables.put(tables.instances, id, { ...instance, leaseMs, aliveUntilMs: nowMs + leaseMs }));
    return true;
  }

  async reap(): Promise<string[]> {
    const { tables } = this.#database;
    const nowMs = this.#database.nowMs();
    const dead = [...tables.instances.values()].filter((instance) => !isAlive(instance, nowMs));
    tables.commit(() => {
      for (const { id } of dead) tables.delete(tables.instances, id);
    });
    return dead.map(({ id }) => id);
  }

  async leave(id: string): Promise<void> {
    const { tables } = this.#database;
    tables.commit(() => tables.delete(tables.instances, id));
  }
}

/**
 * A renewal never writes an expiry more than one lease ahead. An expiry beyond two leases means the clock stepped back,
 * and the lease would never end: the instance counts as dead.
 */
export function isAlive(instance: MemoryInstanceRow | undefined, nowMs: number): boolean {
  if (instance === undefined) return false;
  return instance.aliveUntilMs > nowMs && instance.aliveUntilMs <= nowMs + 2 * instance.leaseMs;
}
