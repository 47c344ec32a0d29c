import assert from "node:assert/strict";
import { test } from "node:test";
import { isRelayError } from "../core/errors.ts";
import type { LoggedEvent, LogItem } from "../ports/event-log.ts";
import type { RequestGroup } from "../ports/request-queue.ts";
import { asksForJob } from "./request-filter.ts";
import {
  checkpointName,
  dispatchedKey,
  executeLockKey,
  requestContext,
  streamOf,
  streamPrefix,
} from "./request-names.ts";
import { sortPage } from "./request-page.ts";
import { referenceOf } from "./request-reference.ts";

const CONTEXT = requestContext("payment.payout", "pay");
const GROUP: RequestGroup = { ...CONTEXT, queue: "q", jobName: "execute-request", markerMs: 1 };

const EVENT: LoggedEvent = {
  id: "0b9c1f8e-6d5a-4c3b-9a2f-1e0d7c6b5a49",
  type: "PayoutCreated.v1",
  stream: "payment.payout.request-acme-eu-r-1",
  revision: 0n,
  createdMs: 1_000,
  data: { id: "r-1" },
  metadata: { intent: "outbox", tenant: "acme-eu" },
};

const fault = (event: Partial<LoggedEvent>) => {
  const referenced = referenceOf({ ...EVENT, ...event }, CONTEXT, 0);
  return "fault" in referenced ? referenced.fault : assert.fail("it became a job");
};

test("E1 E4 E5 E6 streams, markers, checkpoints and locks have the names that everybody knows, braces included", () => {
  assert.equal(streamPrefix(CONTEXT), "payment.payout.request-");
  assert.equal(streamOf(CONTEXT, "core", "42"), "payment.payout.request-core-42");
  assert.equal(checkpointName(CONTEXT), "payment.payout.relay.checkpoint");
  assert.equal(dispatchedKey(CONTEXT, "core", "e1"), "pay:v1:{core}:dispatched:e1");
  assert.equal(executeLockKey(CONTEXT, "core", "42"), "pay:v1:{core}:execute-lock:42");
  assert.equal(requestContext("a.b.c").context, "a.b");
  for (const name of ["payout", "", ".a", "a.", "a b.c", "a.b\n"]) {
    assert.throws(
      () => requestContext(name),
      (error) => isRelayError(error, "CONFIG_INVALID"),
      name,
    );
  }
  assert.throws(() => requestContext("a.b", "n{s}"), /brace/);
});

test("E2 metadata asks with intent outbox, a type with one of the suffixes, whatever its version", () => {
  const asks = (event: Partial<LoggedEvent>, suffixes: readonly string[] = []) =>
    asksForJob({ ...EVENT, ...event }, { suffixes });
  assert.equal(asks({}), true);
  assert.equal(asks({ metadata: { intent: "Outbox" } }), false);
  assert.equal(asks({ metadata: {} }), false);
  assert.equal(asks({ metadata: {} }, ["Created"]), true);
  assert.equal(asks({ metadata: {}, type: "PayoutQueued.v12" }, ["Created", "Queued"]), true);
  assert.equal(asks({ metadata: {}, type: "PayoutCreatedLate.v1" }, ["Created"]), false);
  assert.equal(asks({ metadata: null, type: "Created" }, ["Created"]), true);
  assert.equal(asks({ metadata: null }), null, "unknown");
});

test("E3 a job refers to the request by the id in the data and the tenant of metadata or stream", () => {
  const job = (event: Partial<LoggedEvent>, nowMs = 0) => {
    const referenced = referenceOf({ ...EVENT, ...event }, CONTEXT, nowMs);
    return "job" in referenced ? referenced.job : assert.fail(referenced.fault);
  };
  assert.deepEqual(job({}), { eventId: EVENT.id, tenant: "acme-eu", requestId: "r-1", delayMs: 0 });
  assert.equal(job({ metadata: {} }).tenant, "acme-eu", "from the stream, though it has a dash");
  assert.equal(job({ data: { id: 7 }, metadata: { tenant: "t" } }).requestId, "7");
  assert.equal(job({ metadata: { tenant: "t", notBefore: "1970-01-01T00:00:05Z" } }, 2_000).delayMs, 3_000);
  assert.equal(job({ metadata: { tenant: "t", notBefore: "1970-01-01T00:00:05Z" } }, 9_000).delayMs, 0);
});

test("E3 an event without a request or tenant is described without showing its values", () => {
  for (const data of [undefined, null, "text", [], {}, { id: "" }, { id: {} }, { id: 1.5 }, { id: "x".repeat(300) }]) {
    assert.match(fault({ data }), /its data has no valid request id/);
  }
  assert.match(fault({ metadata: {}, stream: "elsewhere" }), /valid tenant/);
  assert.match(fault({ metadata: { tenant: "a}b" } }), /brace/);
  assert.match(fault({ metadata: { tenant: "t", notBefore: "soon" } }), /notBefore is not a valid time/);
  assert.doesNotMatch(fault({ data: { id: { secret: "canary" } } }), /canary/);
});

test("E2 E3 a page is sorted in its order, and its last place counts whatever became of the events", () => {
  const at = (position: string, event: Partial<LoggedEvent> = {}): LogItem => ({
    kind: "event",
    position,
    event: { ...EVENT, id: position, ...event },
  });
  const page: LogItem[] = [
    at("1"),
    at("2", { metadata: {} }),
    { kind: "gone", position: "3", link: "0@gone" },
    at("4", { data: null }),
    at("5", { createdMs: 10 }),
    { kind: "passed", position: "6" },
    { kind: "caught up" },
  ];
  const sorted = sortPage(page, { group: GROUP, filter: { suffixes: [] }, sinceMs: 500, nowMs: 0 });
  assert.deepEqual(
    sorted.requested.map(({ job }) => job.eventId),
    ["1"],
  );
  assert.deepEqual(
    sorted.deadEvents.map(({ dead }) => [dead.eventId, dead.position]),
    [["4", "4"]],
  );
  assert.deepEqual(
    sorted.skipped.map(({ reason }) => reason),
    ["not an intent", "gone", "before the start"],
  );
  assert.deepEqual([sorted.position, sorted.isCaughtUp, sorted.newestMs], ["6", true, 10]);
  const nothing = sortPage([{ kind: "caught up" }], { group: GROUP, filter: { suffixes: [] }, sinceMs: 0, nowMs: 0 });
  assert.equal(nothing.position, null);
});
