import assert from "node:assert/strict";
import { test } from "node:test";
import { accessText, requireAccess } from "./guard.ts";
import { HttpError } from "./http-error.ts";

const HERE = { host: "127.0.0.1", adminToken: null };
const ABROAD = { host: "0.0.0.0", adminToken: null };
const GUARDED = { host: "0.0.0.0", adminToken: "s3cret" };

function codeOf(rules: typeof HERE | typeof GUARDED, headers: Record<string, string>, method = "GET"): string {
  try {
    requireAccess(rules, { method, headers });
    return "let in";
  } catch (error) {
    assert.ok(error instanceof HttpError);
    return `${error.status} ${error.code}`;
  }
}

test("G4 on this machine alone the API is open under this machine's names, not under one that a page made up", () => {
  for (const host of ["127.0.0.1:3012", "localhost:3012", "LOCALHOST", "[::1]:3012", "127.0.0.1"]) {
    assert.equal(codeOf(HERE, { host }), "let in", host);
  }
  for (const host of [
    "evil.example:3012",
    "127.0.0.1.evil.example",
    "localhost.evil.example:3012",
    "",
    "10.0.0.1",
    "a:b",
  ]) {
    assert.equal(codeOf(HERE, { host }), "403 HOST_UNKNOWN", host);
  }
  assert.equal(codeOf({ ...HERE, host: "::1" }, { host: "[::1]:3012" }), "let in");
});

test("G4 beyond this machine the API is off without a token, and open to whoever sends it", () => {
  const host = "relay.internal:3012";
  assert.equal(codeOf(ABROAD, { host }), "403 API_OFF");
  assert.equal(codeOf(ABROAD, { host, authorization: "Bearer undefined" }), "403 API_OFF");
  assert.equal(codeOf(GUARDED, { host, authorization: "Bearer s3cret" }), "let in");
  for (const authorization of ["", "Bearer ", "Bearer s3cre", "Bearer s3cret2", "Basic s3cret", "s3cret"]) {
    assert.equal(codeOf(GUARDED, { host, authorization }), "401 UNAUTHORIZED", authorization);
  }
  assert.equal(
    codeOf({ ...HERE, adminToken: "s3cret" }, { host: "localhost" }),
    "401 UNAUTHORIZED",
    "asked for, so needed",
  );
});

test("G4 another site's page cannot change anything, with or without the token", () => {
  const host = "127.0.0.1:3012";
  const authorization = "Bearer s3cret";
  for (const rules of [HERE, GUARDED]) {
    const post = (headers: Record<string, string>) => codeOf(rules, { host, authorization, ...headers }, "POST");
    assert.equal(post({}), "let in", "a program that is no browser");
    assert.equal(post({ origin: "http://127.0.0.1:3012", "sec-fetch-site": "same-origin" }), "let in");
    assert.equal(post({ origin: "https://evil.example" }), "403 CROSS_SITE");
    assert.equal(post({ origin: "http://127.0.0.1:9999" }), "403 CROSS_SITE", "another port is another site");
    assert.equal(post({ origin: "null" }), "403 CROSS_SITE");
    assert.equal(post({ "sec-fetch-site": "cross-site" }), "403 CROSS_SITE");
    assert.equal(post({ "sec-fetch-site": "same-site" }), "403 CROSS_SITE");
  }
});

test("G4 the line of the start says which of the three it is", () => {
  assert.match(accessText(HERE), /open to this machine alone/);
  assert.match(accessText(ABROAD), /are off: 0\.0\.0\.0 .* no ADMIN_TOKEN is set/);
  assert.match(accessText(GUARDED), /need the ADMIN_TOKEN/);
  assert.doesNotMatch(accessText(GUARDED), /s3cret/);
});
