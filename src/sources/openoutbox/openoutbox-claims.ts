import type { DurableClaims } from "../../ports/queue-store.ts";
import { displayTable } from "../../postgres/identifiers.ts";
import { writeSettings } from "../../postgres/lanes.ts";
import { statement, transaction } from "../../postgres/transaction.ts";
import { BY_ID_SETTINGS, type Queue } from "./claim.ts";
import { giveBackStraysSql } from "./give-back-strays.sql.ts";
import { reapStaleSql } from "./reap-stale.sql.ts";
import { noteReaped } from "./reaped-rows.ts";
import { refreshSql } from "./refresh.sql.ts";

/** The upkeep of claims that stand in the rows, where other relays see them. */
export class OpenOutboxClaims implements DurableClaims {
  readonly leaseMs: number;
  readonly #queue: () => Promise<Queue>;

  constructor(leaseMs: number, queue: () => Promise<Queue>) {
    this.leaseMs = leaseMs;
    this.#queue = queue;
  }

  async refresh(owner: string, ids: readonly string[]): Promise<void> {
    const { database, scope } = await this.#queue();
    const settings = {
      ...writeSettings(database, "refreshing claims", displayTable(scope.table.name)),
      settings: BY_ID_SETTINGS,
    };
    if (ids.length > 0) await statement(database.pool, settings, refreshSql(scope, owner, ids, this.leaseMs));
    await statement(database.pool, settings, giveBackStraysSql(scope, owner, ids, this.leaseMs));
  }

  async reapStale(rows: number): Promise<{ readonly freed: number; readonly dead: number }> {
    const { database, scope } = await this.#queue();
    const settings = writeSettings(database, "reaping stale claims", displayTable(scope.table.name));
    return await transaction(database.pool, settings, async (session) => {
      const reaped = await session.rows(reapStaleSql(scope, this.leaseMs, rows));
      const dead = await noteReaped(session, scope, reaped);
      return { freed: reaped.length - dead, dead };
    });
  }
}
