import type { Tone } from "../../kit/badge.tsx";
import type { AuditAction } from "../../kit/types.ts";

/** Every action that the audit knows, and how loud it is: red takes something away from a receiver or is refused. */
export const AUDIT_TONES: Readonly<Record<AuditAction, Tone>> = {
  pause: "warn",
  resume: "good",
  limit: "warn",
  lanes: "warn",
  replay: "accent",
  discard: "bad",
  edit: "warn",
  plan: "info",
  "plan-run": "accent",
  "plan-pause": "warn",
  "plan-cancel": "warn",
  "plan-stopped": "bad",
  "plan-done": "good",
  "key-retry": "accent",
  "key-skip": "bad",
  "key-resume": "good",
  "key-discard": "bad",
  "log-seek": "warn",
  "log-reset": "warn",
  login: "plain",
  "login-refused": "bad",
  logout: "plain",
  "payload-read": "plain",
};

export function auditTone(action: string): Tone {
  return (AUDIT_TONES as Readonly<Record<string, Tone>>)[action] ?? "plain";
}

/** `count 120 · perSecond 50`. */
export function detailText(detail: Readonly<Record<string, unknown>>): string {
  return Object.entries(detail)
    .map(([name, value]) => `${name} ${typeof value === "object" ? JSON.stringify(value) : String(value)}`)
    .join(" · ");
}
