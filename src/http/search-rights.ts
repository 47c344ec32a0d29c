import type { EventFilter } from "../operations/events/event-filter.ts";
import type { OperationTarget } from "../operations/events/event-source.ts";
import { HttpError } from "./http-error.ts";
import { hasRole, type Identity } from "./identity.ts";

type Asked = Pick<EventFilter, "headers" | "payload" | "text">;

/**
 * A caller who can search payloads or hidden headers could reconstruct them piece by piece, so searching requires the
 * right to read.
 */
export function requireSearchable({ shown }: OperationTarget, identity: Identity, asked: Asked): void {
  const { headers = [], payload, text } = asked;
  const isAdmin = hasRole(identity, "admin");
  const hidden = headers.find(({ name }) => shown?.any && shown.header(name, "") !== "");
  if (hidden !== undefined && !isAdmin) {
    throw new HttpError(403, "PAYLOADS_HIDDEN", `REDACT hides the header ${hidden.name}: only an admin may search it`);
  }
  if (text === undefined && payload === undefined) return;
  if (!identity.maySeePayloads) {
    const fix = "Remove text: and payload. from the filter, or use a token with +payloads in its role.";
    throw new HttpError(
      403,
      "PAYLOADS_HIDDEN",
      `${identity.name} must not see payloads, and so must not search them`,
      fix,
    );
  }
  if (shown?.any && !isAdmin) {
    throw new HttpError(403, "PAYLOADS_HIDDEN", "REDACT hides parts of payloads: only an admin may search them");
  }
}

/** Whether the caller may search payloads. */
export function maySearchPayloads({ shown }: OperationTarget, identity: Identity): boolean {
  return identity.maySeePayloads && (!shown?.any || hasRole(identity, "admin"));
}
