import type { ServiceConfig } from "../config/service-config.ts";
import { systemClock } from "../core/clock.ts";
import { shownRules } from "../operations/events/redact-shown.ts";
import { openDatabase } from "../postgres/pool.ts";
import { BudgetedRecorder } from "../telemetry/attempts/attempt-recorder.ts";
import { postgresAttemptStore } from "../telemetry/attempts/postgres-attempt-store.ts";
import { redactor } from "../telemetry/logs/redaction.ts";

/**
 * Records attempts in the relay's schema, over connections of its own so that deliveries never wait for it. Null for
 * stores without that schema.
 */
export function openRecorder({
  database,
  instanceName,
  record,
  requests,
  secrets,
  store,
}: ServiceConfig): BudgetedRecorder | null {
  if (store !== null || requests !== null) return null;
  const own = openDatabase({ ...database, applicationName: "outbox-relay recorder", connectionsMax: 2 });
  return new BudgetedRecorder({
    store: postgresAttemptStore({
      database: own,
      instance: instanceName,
      redact: redactor(secrets),
      redactHeader: shownRules(record.redact).header,
    }),
    clock: systemClock,
    deliveredPerSecond: record.deliveredPerSecond,
    retentionMs: record.retentionMs,
  });
}
