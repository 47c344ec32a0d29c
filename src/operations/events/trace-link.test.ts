import assert from "node:assert/strict";
import { test } from "node:test";
import { traceLink } from "./trace-link.ts";

const ID = "4bf92f3577b34da6a3ce929d0e0e4736";
const headers = { Traceparent: `00-${ID}-00f067aa0ba902b7-01` };

test("F3 the link to a trace is built from the template and the event, whose values cannot change the rest of the URL", () => {
  const template = "https://tempo.example/trace/{traceId}?q={correlationId}";
  assert.equal(traceLink("https://t.example/{traceId}", { headers, correlationId: null }), `https://t.example/${ID}`);
  assert.equal(
    traceLink(template, { headers, correlationId: "a b&c=../$&" }),
    `https://tempo.example/trace/${ID}?q=a%20b%26c%3D..%2F%24%26`,
  );
  assert.equal(traceLink(template, { headers, correlationId: null }), null);
  assert.equal(traceLink(template, { headers: { traceparent: "javascript:alert(1)" }, correlationId: "c" }), null);
  assert.equal(traceLink(null, { headers, correlationId: "c" }), null);
});
