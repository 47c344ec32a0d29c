import { orphanRemarks } from "../pipelines/orphans.ts";
import type { DoctorSubject, Finding } from "./finding.ts";

/** Pipelines that are no longer configured. Harmless, except that those of logs block retention. */
export async function checkOrphans({ columns, configured, database }: DoctorSubject): Promise<readonly Finding[]> {
  if (configured === undefined) return [];
  const remarks = await orphanRemarks({ database, columns }, configured);
  return remarks.map(({ fix, what }) => ({ severity: "note", check: "pipelines", what, fix }));
}
