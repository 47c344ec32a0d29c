import type { Membership } from "../ports/membership.ts";
import { jsonSql, quoteArray, quoteLiteral } from "./identifiers.ts";
import type { Database } from "./pool.ts";
import type { Row } from "./session.ts";
import { statement } from "./transaction.ts";

/** An expiry further ahead than this many leases can only come from a clock that stepped back. */
const LEASES_AHEAD_MAX = 3;

/**
 * All times are the database's. `clock_timestamp()` and not `now()`: a statement that waited for a lock must not use
 * the time at which it began. The control connection belongs to the database and outlives the membership.
 */
export function postgresMembership(database: Database): Membership {
  const { instances } = database.tables;
  const run = async (doing: string, text: string): Promise<readonly Row[]> =>
    await statement(
      database.control,
      {
        context: database.errorContext(doing),
        statementTimeoutMs: database.timeouts.statementMs,
        lockTimeoutMs: database.timeouts.lockMs,
        synchronousCommit: "local",
      },
      text,
    );
  return {
    databaseId: database.id,
    join: async ({ id, name, leaseMs, pipelines, takes, service, ends }) => {
      const values = [
        quoteLiteral(id),
        quoteLiteral(name.replaceAll("\0", "")),
        `${quoteArray(pipelines)}::text[]`,
        String(Math.ceil(leaseMs)),
        aliveUntil(leaseMs),
        jsonSql(takes),
        service === undefined ? "null" : quoteLiteral(service.replaceAll("\0", "")),
        jsonSql(ends),
      ];
      await run(
        "joining",
        `insert into ${instances} (id, name, pipelines, lease_ms, alive_until, takes, service, ends)
         values (${values.join(", ")})`,
      );
    },
    renew: async (id, leaseMs) => {
      const rows = await run(
        "renewing the heartbeat",
        `update ${instances} set alive_until = ${aliveUntil(leaseMs)}, lease_ms = ${Math.ceil(leaseMs)}
         where id = ${quoteLiteral(id)} and alive_until > clock_timestamp() returning id`,
      );
      return rows.length === 1;
    },
    reap: async () => {
      // A running renewal holds the row's lock: that instance is alive, so skip it.
      const rows = await run(
        "reaping dead instances",
        `delete from ${instances} where id in (
           select id from ${instances}
           where alive_until <= clock_timestamp()
             or alive_until > clock_timestamp() + ${LEASES_AHEAD_MAX} * lease_ms * interval '1 millisecond'
           for update skip locked)
         returning id`,
      );
      return rows.map((row) => row[0] ?? "");
    },
    leave: async (id) => {
      await run("leaving", `delete from ${instances} where id = ${quoteLiteral(id)}`);
    },
  };
}

function aliveUntil(leaseMs: number): string {
  return `clock_timestamp() + ${Math.ceil(leaseMs)} * interval '1 millisecond'`;
}
