import { readRowSecurity, rowSecurityFix, rowSecurityText } from "../../postgres/row-security.ts";
import type { DoctorSubject, Finding } from "./finding.ts";

/** Rows that the relay's role cannot see look like an empty outbox. */
export async function checkRowSecurity({ database, managed = [], tables }: DoctorSubject): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  const queues = tables.filter(({ isThere }) => isThere).map((table) => ({ table, use: "queue" as const }));
  for (const { table, use } of [...queues, ...managed.map((table) => ({ table, use: "log" as const }))]) {
    const found = await readRowSecurity(database, table, use);
    if (found === null) continue;
    const parts = { what: rowSecurityText(table, found), fix: rowSecurityFix(table, found) };
    findings.push({ severity: "error", check: "row security", ...parts });
  }
  return findings;
}
