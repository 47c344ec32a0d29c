import { z } from "zod";
import { AUDIT_ACTIONS } from "../../operations/audit/audit.ts";
import { ROLES } from "../identity.ts";
import { time } from "./shared-shapes.ts";

/** The caller's identity, and the available logins. */
export const sessionSchema = z
  .object({
    service: z.string(),
    version: z.string(),
    access: z
      .enum(["open", "login", "off"])
      .describe(
        "open: to the user who runs the service, on this machine; login: a token or an account is required; off: no access",
      ),
    logins: z.array(z.enum(["token", "oidc"])),
    identity: z
      .object({
        name: z.string(),
        by: z.enum(["local", "token", "oidc"]),
        role: z.enum(ROLES),
        maySeePayloads: z.boolean(),
        expiresAt: time,
      })
      .nullable(),
    isDemo: z.boolean(),
  })
  .meta({ id: "Session" });

/** Entries that an older version wrote may have other actions. */
export const auditActionSchema = z.enum(AUDIT_ACTIONS);

/** One entry of the audit. */
export const auditEntrySchema = z
  .object({
    id: z.string(),
    at: z.iso.datetime(),
    actor: z.string(),
    via: z.enum(["api", "console", "cli", "relay"]),
    action: z.string().describe(`One of ${AUDIT_ACTIONS.join(", ")}`),
    target: z.string().nullable(),
    eventId: z.string().nullable(),
    reason: z.string().nullable(),
    detail: z.record(z.string(), z.unknown()),
  })
  .meta({ id: "AuditEntry" });

/** One page of the audit. */
export const auditSchema = z.object({ entries: z.array(auditEntrySchema), cursor: z.string().nullable() });

/** Settings in force. */
export const configSchema = z.object({
  settings: z.array(
    z
      .object({
        name: z.string(),
        key: z.string().describe("Name in the config file"),
        value: z.string().describe("Without secrets"),
        origin: z.string(),
        description: z.string(),
      })
      .meta({ id: "Setting" }),
  ),
});

/** Findings of the doctor. */
export const findingsSchema = z.object({
  findings: z.array(
    z
      .object({ severity: z.enum(["error", "warning", "note"]), check: z.string(), what: z.string(), fix: z.string() })
      .meta({ id: "Finding" }),
  ),
});

/** Readers of logs. */
export const logsSchema = z.object({
  logs: z.array(
    z
      .object({
        pipeline: z.string(),
        source: z.string(),
        kind: z.enum(["managed", "tail", "wal"]),
        subscriber: z.string().nullable(),
        isPaused: z.boolean(),
        lanes: z.array(
          z.object({
            lane: z.int(),
            isOwned: z.boolean(),
            position: z.record(z.string(), z.unknown()).nullable(),
            settledAt: time,
          }),
        ),
        lag: z.int().nullable(),
        isEstimate: z.boolean(),
        oldestAgeMs: z.number().nullable(),
        countProblem: z.string().nullable(),
        parked: z.int(),
        slot: z
          .object({
            name: z.string(),
            status: z.string(),
            isActive: z.boolean(),
            retainedBytes: z.number().nullable(),
            safeBytes: z.number().nullable(),
          })
          .nullable(),
        retentionWaits: z.string().nullable(),
      })
      .meta({ id: "LogReader" }),
  ),
});
