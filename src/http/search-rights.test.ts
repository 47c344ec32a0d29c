import assert from "node:assert/strict";
import { test } from "node:test";
import type { OperationTarget } from "../operations/event-source.ts";
import type { Identity, Role } from "./identity.ts";
import { requireText } from "./search-rights.ts";

const who = (role: Role, maySeePayloads: boolean): Identity => ({ name: "eve", role, maySeePayloads, via: "api" });
const where = (any: boolean) => ({ shown: { any } }) as unknown as OperationTarget;

test("F3 G4 payloads are searched only by those who may read them, and where something is redacted by admins alone", () => {
  assert.doesNotThrow(() => requireText(where(true), who("viewer", false), undefined));
  assert.doesNotThrow(() => requireText(where(false), who("viewer", true), "card"));
  assert.doesNotThrow(() => requireText(where(true), who("admin", true), "card"));
  assert.throws(() => requireText(where(false), who("admin", false), "card"), /eve may not see payloads, nor search/);
  assert.throws(() => requireText(where(true), who("operator", true), "card"), /only an admin may search/);
});
