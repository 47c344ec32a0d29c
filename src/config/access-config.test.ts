import assert from "node:assert/strict";
import { test } from "node:test";
import { type AccessConfig, tokenDigest } from "./access-config.ts";
import { ConfigProblems } from "./reading/config-problems.ts";
import type { Environment } from "./reading/environment.ts";
import { readSettings } from "./reading/read-settings.ts";
import { serviceConfig } from "./service-config.ts";

const BASE = { DATABASE_URL: "postgres://localhost/shop", OUTBOX_SCHEMAS: "shop", OUTBOX_DESTINATION: "stdout:" };
const OIDC = {
  OIDC_ISSUER: "https://id.example.org/realms/shop",
  OIDC_CLIENT_ID: "relay",
  OIDC_CLIENT_SECRET: "canary-client-secret",
  OIDC_ROLES: "viewer=support, operator+payloads=on call, admin=platform",
};

const configOf = (env: Environment) => serviceConfig(readSettings({ env: { ...BASE, ...env } }));
const accessOf = (env: Environment): AccessConfig => configOf(env).access;

function problemsOf(env: Environment): string {
  try {
    configOf(env);
    return "";
  } catch (error) {
    assert.ok(error instanceof ConfigProblems);
    assert.doesNotMatch(error.message, /canary/);
    return error.message;
  }
}

test("G4 A14 named tokens have a role, and seeing payloads is a separate right", () => {
  const hex = tokenDigest("canary-of-cleo-and-16").toString("hex");
  const written = `ann:viewer:canary-of-ann-and-16, bob:operator+payloads:canary:of,\ncleo:admin:sha256:${hex}`;
  const { tokens } = accessOf({
    ADMIN_TOKEN: "canary-of-admin-and-16",
    API_TOKENS: written.replace("canary:of", "canary:of-bob-and-16"),
  });
  assert.deepEqual(
    tokens.map(({ digest, ...rest }) => [...Object.values(rest), digest.toString("hex")]),
    [
      ["admin", "admin", true, tokenDigest("canary-of-admin-and-16").toString("hex")],
      ["ann", "viewer", false, tokenDigest("canary-of-ann-and-16").toString("hex")],
      ["bob", "operator", true, tokenDigest("canary:of-bob-and-16").toString("hex")],
      ["cleo", "admin", true, hex],
    ],
  );
  assert.deepEqual([accessOf({}).tokens, accessOf({}).oidc], [[], null]);
});

test("G4 A20 each single token is redacted from the log", () => {
  const { secrets, warnings } = configOf({ ADMIN_TOKEN: "short", API_TOKENS: "ann:viewer:canary-of-ann-and-16" });
  assert.ok(secrets.includes("canary-of-ann-and-16"));
  assert.match(warnings.join(), /ADMIN_TOKEN has fewer than 16 characters/);
});

test("G4 A20 an invalid token is reported by its position and never shown", () => {
  const wrong: [string, RegExp][] = [
    ["canary-alone", /entry 1 is invalid: write name:role:token/],
    ["ann:viewer:canary-of-ann-and-16,bob:chief:canary-of-bob-and-16", /entry 2 is invalid: write name:role:token/],
    ["ann canary:viewer:canary-of-ann-and-16", /entry 1 is invalid/],
    ["ann:viewer+all:canary-of-ann-and-16", /entry 1 is invalid/],
    ["ann:viewer:canary", /entry 1 has a token with fewer than 16 characters/],
    ["ann:viewer:sha256:canary-canary-canary", /entry 1 is invalid: write sha256: followed by/],
    ["ann:viewer:canary-of-ann-and-16,ann:admin:canary-of-bob-and-16", /entry 2 has a name that is already in use/],
    ["admin:viewer:canary-of-ann-and-16", /entry 1 has a name that is already in use/],
    ["local:viewer:canary-of-ann-and-16", /entry 1 has a name that is already in use/],
    ["canary,,canary", /API_TOKENS is invalid: write one or more items/],
  ];
  for (const [API_TOKENS, expected] of wrong) {
    assert.match(problemsOf({ ADMIN_TOKEN: "canary-of-admin-and-16", API_TOKENS }), expected);
  }
});

test("G4 A14 login by OpenID Connect needs all its settings, and TLS", () => {
  const { oidc } = accessOf({ ...OIDC, OIDC_SCOPES: "openid,groups" });
  assert.deepEqual(oidc?.scopes, ["openid", "groups"]);
  assert.deepEqual(
    [...(oidc?.rightsByGroup ?? [])],
    [
      ["support", { role: "viewer", maySeePayloads: false }],
      ["on call", { role: "operator", maySeePayloads: true }],
      ["platform", { role: "admin", maySeePayloads: true }],
    ],
  );
  const { OIDC_CLIENT_SECRET: _, OIDC_ROLES: __, ...half } = OIDC;
  assert.match(problemsOf(half), /OIDC_CLIENT_SECRET and OIDC_ROLES/);
  assert.match(problemsOf({ ...OIDC, OIDC_ISSUER: "http://id.example.org" }), /OIDC_ISSUER must start with https/);
  assert.equal(problemsOf({ ...OIDC, OIDC_ISSUER: "http://localhost:8080" }), "");
  assert.match(problemsOf({ ...OIDC, OIDC_ISSUER: "id.example.org" }), /OIDC_ISSUER is not a URL/);
  assert.match(
    problemsOf({ ...OIDC, OIDC_ROLES: "chief=support" }),
    /OIDC_ROLES has "chief=support": write role=group/,
  );
  assert.match(problemsOf({ PUBLIC_URL: "relay" }), /PUBLIC_URL is not a URL/);
  assert.equal(
    accessOf({ PUBLIC_URL: "https://relay.example.org/console/" }).publicOrigin,
    "https://relay.example.org",
  );
});
