import assert from "node:assert/strict";
import { test } from "node:test";
import { sharedReason } from "./shared-reason.ts";

const event = {
  id: "e-4711",
  type: "order.placed",
  key: "ann@example.org",
  correlationId: "c.1",
  headers: { tenant: "acme", n: "7" },
};

test("H1 A20 a reason that everyone can read holds neither id nor key nor header of the event that failed", () => {
  const shared = (reason: string) => sharedReason(reason, event);
  assert.equal(shared("http did not say what became of event e-4711."), "http did not say what became of event <id>.");
  assert.equal(shared('no queue for "ann@example.org" of acme'), 'no queue for "<key>" of <header>');
  assert.equal(
    shared('partition "7" of 17, 7 left'),
    'partition "<header>" of 17, 7 left',
    "short ones between quotes alone",
  );
  assert.equal(shared("acmecorp answered 503"), "acmecorp answered 503", "a part of a word is another word");
  assert.equal(sharedReason("answered 503", { ...event, id: "503" }), "answered 503", "a number is mostly another one");
  assert.equal(
    sharedReason("no order.placed", { ...event, key: "order.placed" }),
    "no order.placed",
    "a type is known",
  );
  assert.equal(sharedReason("x", { ...event, key: null, headers: {} }), "x");
});
