import assert from "node:assert/strict";
import { test } from "node:test";
import type { OperationTarget } from "../operations/events/event-source.ts";
import { shownRules } from "../operations/events/redact-shown.ts";
import type { Identity, Role } from "./identity.ts";
import { requireSearchable } from "./search-rights.ts";

const who = (role: Role, maySeePayloads: boolean): Identity => ({ name: "eve", role, maySeePayloads, via: "api" });
const where = (any: boolean) => ({ shown: shownRules(any ? ["authorization"] : []) }) as unknown as OperationTarget;

const CARD = { text: "card" };

test("F3 G4 searching payloads requires the right to read them, and the role admin where something is redacted", () => {
  assert.doesNotThrow(() => requireSearchable(where(true), who("viewer", false), {}));
  assert.doesNotThrow(() => requireSearchable(where(false), who("viewer", true), CARD));
  assert.doesNotThrow(() => requireSearchable(where(true), who("admin", true), CARD));
  assert.throws(
    () => requireSearchable(where(false), who("admin", false), CARD),
    /eve must not see payloads, and so must not search/,
  );
  assert.throws(() => requireSearchable(where(true), who("operator", true), CARD), /only an admin may search/);
  const field = { payload: [{ path: ["card"], value: "4*", isPattern: true }] };
  assert.throws(() => requireSearchable(where(false), who("viewer", false), field), /must not see payloads/);
  const header = (name: string) => ({ headers: [{ name, value: null }] });
  assert.doesNotThrow(() => requireSearchable(where(true), who("viewer", false), header("tenant")));
  assert.throws(() => requireSearchable(where(true), who("viewer", true), header("Authorization")), /only an admin/);
});
