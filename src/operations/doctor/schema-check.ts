import { migrationStatus } from "../../postgres/migrations/migrate.ts";
import type { DoctorSubject, Finding } from "./finding.ts";

/** Whether the relay's schema exists in a version that this program supports. */
export async function checkSchema({ database }: DoctorSubject): Promise<readonly Finding[]> {
  const { newest, version } = await migrationStatus(database);
  if (version === newest) return [];
  const name = database.relaySchema;
  const found = (what: string, fix: string): Finding[] => [{ severity: "error", check: "schema", what, fix }];
  if (version === 0) {
    return found(`The relay's schema ${name} does not exist`, "outbox-relay migrate up   # or --sql to print it");
  }
  if (version < newest)
    return found(`The schema ${name} has version ${version} of ${newest}`, "outbox-relay migrate up");
  return found(
    `The schema ${name} has version ${version}, this program supports ${newest}`,
    "Run the newer version of outbox-relay that created it, or roll its migrations back with that version.",
  );
}
