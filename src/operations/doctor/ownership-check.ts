import { systemId } from "../../postgres/identity.ts";
import { transaction } from "../../postgres/transaction.ts";
import { operationReadSettings } from "../events/event-source.ts";
import type { DoctorSubject, Finding } from "./finding.ts";

/** Whether the database is the original and not a copy, and whether a live instance serves its pipelines. */
export async function checkOwnership({ database }: DoctorSubject): Promise<readonly Finding[]> {
  const { identity, instances, lanes, pipelines } = database.tables;
  return await transaction(database.pool, operationReadSettings(database, "reading the owners"), async (session) => {
    const [own] = await session.rows(`select system_id from ${identity}`);
    const runsOn = await systemId(session);
    const findings: Finding[] = [];
    if (own?.[0] != null && runsOn !== null && own[0] !== runsOn) {
      findings.push({
        severity: "error",
        check: "identity",
        what: "The relay's schema was created on another server: this database is a restored copy",
        fix: "outbox-relay adopt             # replaces the original\noutbox-relay adopt --as-copy   # runs beside the original",
      });
    }
    const rows = await session.rows(
      `select p.name, count(*) from ${pipelines} p join ${lanes} l on l.pipeline = p.name
       left join ${instances} i on i.id = l.owner and i.alive_until > clock_timestamp()
       where i.id is null and p.paused_at is null and not exists (
         select from ${pipelines} o join ${instances} j on o.name = any(j.pipelines) and j.alive_until > clock_timestamp()
         where o.source_schema = p.source_schema and o.source_table = p.source_table and o.name <> p.name)
       group by 1 order by 1`,
    );
    const list = rows.map((row) => `${row[0]} (${row[1]})`).join(", ");
    if (rows.length > 0) {
      const what = `Lanes without a live owner: ${list}`;
      findings.push({
        severity: "warning",
        check: "lanes",
        what,
        fix: "outbox-relay run   # no instance delivers their events",
      });
    }
    return findings;
  });
}
