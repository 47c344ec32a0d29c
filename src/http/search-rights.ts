import type { OperationTarget } from "../operations/event-source.ts";
import { HttpError } from "./http-error.ts";
import { hasRole, type Identity } from "./identity.ts";

/** Who may find an event by a part of its payload could read all of it, part by part. */
export function requireText({ shown }: OperationTarget, identity: Identity, text: string | undefined): void {
  if (text === undefined) return;
  if (!identity.maySeePayloads) {
    const fix = "Leave text: out, or ask for a token whose role has +payloads behind it.";
    throw new HttpError(403, "PAYLOADS_HIDDEN", `${identity.name} may not see payloads, nor search them`, fix);
  }
  if (shown?.any && !hasRole(identity, "admin")) {
    throw new HttpError(403, "PAYLOADS_HIDDEN", "REDACT hides a part of payloads: only an admin may search them");
  }
}
