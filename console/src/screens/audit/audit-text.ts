import type { Tone } from "../../kit/badge.tsx";
import type { AuditAction } from "../../kit/types.ts";

/** Every audit action with its colour. Red: a receiver loses events, or access was refused. */
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
  "pipeline-forget": "bad",
  login: "plain",
  "login-refused": "bad",
  logout: "plain",
  "payload-read": "plain",
  export: "plain",
};

export function auditTone(action: string): Tone {
  return (AUDIT_TONES as Readonly<Record<string, Tone>>)[action] ?? "plain";
}

/** `count 120 · perSecond 50 · done 24`: the details of an entry; nested and empty ones are left out. */
export function detailText(detail: Readonly<Record<string, unknown>>): string {
  return Object.entries(detail)
    .flatMap(([name, value]) => (isGroup(value) ? partsOf(value) : [`${name} ${plainText(value)}`]))
    .join(" · ");
}

function isGroup(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function partsOf(group: Readonly<Record<string, unknown>>): readonly string[] {
  const said = Object.entries(group).filter(([, value]) => value !== 0 && value !== null);
  return said.map(([name, value]) => `${name} ${plainText(value)}`);
}

function plainText(value: unknown): string {
  if (value === null) return "none";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
