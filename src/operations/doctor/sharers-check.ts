import { conflictingReaders, readerOf, readersSql, sharedTableText } from "../../postgres/shared-table.ts";
import { transaction } from "../../postgres/transaction.ts";
import { operationReadSettings } from "../events/event-source.ts";
import type { DoctorSubject, Finding } from "./finding.ts";

/** Deployments that read the same events of one table: each event would reach only one of them. */
export async function checkSharers({ database, tables }: DoctorSubject): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  for (const table of tables.filter(({ isThere }) => isThere)) {
    const settings = operationReadSettings(database, "looking for other deployments");
    const rows = await transaction(database.pool, settings, (session) =>
      session.rows(readersSql(database.tables, table)),
    );
    const readers = rows.map(readerOf);
    const [me, ...others] = readers.flatMap((reader) => {
      const rivals = conflictingReaders(reader, readers);
      return rivals.length === 0 ? [] : [reader, ...rivals];
    });
    if (me === undefined) continue;
    findings.push({
      severity: "error",
      check: "owners",
      what: sharedTableText(
        table,
        me,
        others.filter(({ instance }) => instance !== me.instance),
      ),
      fix: `Stop one of them, or divide the events by OUTBOX_ROUTES; to hand over on purpose:\noutbox-relay pause '${me.pipeline}' --hand-over`,
    });
  }
  return findings;
}
