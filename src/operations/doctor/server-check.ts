import { migrationStatus } from "../../postgres/migrations/migrate.ts";
import type { Row } from "../../postgres/session.ts";
import { transaction } from "../../postgres/transaction.ts";
import { operationReadSettings } from "../events/event-source.ts";
import type { DoctorSubject, Finding } from "./finding.ts";

/** Settings of the server, or of this role, that lose events or block the upkeep. */
export async function checkServer({ database }: DoctorSubject): Promise<readonly Finding[]> {
  const rows = await transaction(database.pool, operationReadSettings(database, "reading the settings"), (session) =>
    session.rows(
      `select s.name, s.reset_val,
         (select count(*) from pg_catalog.pg_stat_activity a where a.datname = current_database()
           and a.state = 'idle in transaction' and a.xact_start < now() - interval '5 minutes')
       from pg_catalog.pg_settings s
       where s.name in ('synchronous_commit', 'fsync', 'idle_in_transaction_session_timeout')`,
    ),
  );
  const settings = new Map(rows.map((row: Row) => [row[0] ?? "", row[1] ?? ""]));
  return [...settingFindings(settings), ...idleFindings(settings, Number(rows[0]?.[2]))];
}

function settingFindings(settings: ReadonlyMap<string, string>): Finding[] {
  const findings: Finding[] = [];
  for (const name of ["synchronous_commit", "fsync"]) {
    if (settings.get(name) !== "off") continue;
    findings.push({
      severity: "warning",
      check: "settings",
      what: `${name} is off: a crash of the server loses events whose commit it had confirmed`,
      fix: `alter system set ${name} = on; select pg_reload_conf();`,
    });
  }
  return findings;
}

/** A session that stays idle in a transaction keeps later row versions from being vacuumed. */
function idleFindings(settings: ReadonlyMap<string, string>, idle: number): Finding[] {
  if (!(idle > 0)) return [];
  const limit = settings.get("idle_in_transaction_session_timeout");
  return [
    {
      severity: "warning",
      check: "settings",
      what: `${idle} sessions have been idle in a transaction for more than 5 minutes: nothing can be vacuumed, and the events they wrote are not delivered`,
      fix:
        limit === "0"
          ? "alter system set idle_in_transaction_session_timeout = '5min'; select pg_reload_conf();"
          : "select pid, usename, application_name, xact_start from pg_stat_activity where state = 'idle in transaction' order by xact_start;",
    },
  ];
}

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
