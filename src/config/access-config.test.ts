import assert from "node:assert/strict";
import { test } from "node:test";
import { type AccessConfig, tokenDigest } from "./access-config.ts";
import { ConfigProblems } from "./config-problems.ts";
import type { Environment } from "./environment.ts";
import { readSettings } from "./read-settings.ts";
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

test("G4 A14 named tokens have a role, and payloads are a right of their own", () => {
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

test("G4 A20 each token by itself is a secret that no log line may show", () => {
  const { secrets, warnings } = configOf({ ADMIN_TOKEN: "short", API_TOKENS: "ann:viewer:canary-of-ann-and-16" });
  assert.ok(secrets.includes("canary-of-ann-and-16"));
  assert.match(warnings.join(), /ADMIN_TOKEN has less than 16 characters/);
});

test("G4 A20 a token that cannot be used is told by its place, and never shown", () => {
  const wrong: [string, RegExp][] = [
    ["canary-alone", /entry 1 cannot be used: write name:role:token/],
    ["ann:viewer:canary-of-ann-and-16,bob:chief:canary-of-bob-and-16", /entry 2 cannot be used: write name:role:token/],
    ["ann canary:viewer:canary-of-ann-and-16", /entry 1 cannot be used/],
    ["ann:viewer+all:canary-of-ann-and-16", /entry 1 cannot be used/],
    ["ann:viewer:canary", /entry 1 has a token of less than 16 characters/],
    ["ann:viewer:sha256:canary-canary-canary", /entry 1 cannot be used: sha256: is followed by/],
    ["ann:viewer:canary-of-ann-and-16,ann:admin:canary-of-bob-and-16", /entry 2 has a name that is taken/],
    ["admin:viewer:canary-of-ann-and-16", /entry 1 has a name that is taken/],
    ["local:viewer:canary-of-ann-and-16", /entry 1 has a name that is taken/],
    ["canary,,canary", /API_TOKENS cannot be used: write at least one item/],
  ];
  for (const [API_TOKENS, expected] of wrong) {
    assert.match(problemsOf({ ADMIN_TOKEN: "canary-of-admin-and-16", API_TOKENS }), expected);
  }
});

test("G4 A14 logins by OpenID Connect need all of their parts, over TLS", () => {
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
  assert.match(problemsOf(half), /OIDC_CLIENT_SECRET and OIDC_ROLES must be set too/);
  assert.match(problemsOf({ ...OIDC, OIDC_ISSUER: "http://id.example.org" }), /OIDC_ISSUER must begin with https/);
  assert.equal(problemsOf({ ...OIDC, OIDC_ISSUER: "http://localhost:8080" }), "");
  assert.match(problemsOf({ ...OIDC, OIDC_ISSUER: "id.example.org" }), /OIDC_ISSUER is no address/);
  assert.match(
    problemsOf({ ...OIDC, OIDC_ROLES: "chief=support" }),
    /OIDC_ROLES has "chief=support": write role=group/,
  );
  assert.match(problemsOf({ PUBLIC_URL: "relay" }), /PUBLIC_URL is no address/);
  assert.equal(
    accessOf({ PUBLIC_URL: "https://relay.example.org/console/" }).publicOrigin,
    "https://relay.example.org",
  );
});
