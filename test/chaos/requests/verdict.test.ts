import assert from "node:assert/strict";
import { test } from "node:test";
import { type PlannedRequest, SECRET } from "./plan.ts";
import type { AddedJob } from "./redis-history.ts";
import type { StoredEvent } from "./stored-log.ts";
import { type Evidence, judge } from "./verdict.ts";

const request: PlannedRequest = { tenant: "core", id: "p", account: "busy/1", ending: "completed" };
const stream = "payment.payout.request-core-p";
const origin = { correlationId: "c", tenant: "core" };

function event(revision: number, type: string, data: object, metadata: object): StoredEvent {
  const id = `e${revision}`;
  return {
    ...{ id, type, stream, revision, createdMs: 1_000 * revision },
    data: { id: "p", ...data },
    metadata: { ...origin, eventId: id, ...metadata },
  };
}

const created = event(0, "PayoutCreated.v1", {}, { intent: "outbox", causationId: "c" });
const failed = event(
  1,
  "PayoutFailed.v1",
  { reason: "answered 503", attempt: 1, final: false },
  { causationId: "e0", intent: "outbox", notBefore: new Date(1_500).toISOString() },
);
const completed = event(2, "PayoutCompleted.v1", { result: { transfer: "t-1" } }, { causationId: "e1" });

function job(id: string): AddedJob {
  return { id, name: "execute-request", data: { tenant: "core", requestId: "p" }, opts: { attempts: 1 } };
}

interface Found {
  readonly events?: readonly StoredEvent[];
  readonly jobs?: readonly AddedJob[];
  readonly bytes?: string;
  readonly keys?: readonly string[];
}

function violations({ bytes = "", events, jobs, keys }: Found): readonly string[] {
  const added = jobs ?? [job("e0"), job("e1")];
  const asked = keys ?? ["core:p:0"];
  const evidence: Evidence = {
    requests: [request],
    events: events ?? [created, failed, completed],
    history: { added, announced: added.map(({ id }) => id), bytes: Buffer.from(bytes) },
    transfers: new Map([["core:p:0", { transfer: "t-1" }]]),
    calls: new Map(asked.map((key) => [key, 1])),
  };
  return judge(evidence).violations;
}

test("E4 E6: a request, its retry and its outcome, each with one job, are without a fault", () => {
  assert.deepEqual(violations({}), []);
});

test("E4 E6: what is missing, double, early, strange or told to Redis is found", () => {
  const second = { ...completed, id: "e3", revision: 3, metadata: { ...completed.metadata, eventId: "e3" } };
  const early = { ...completed, createdMs: 1_400 };
  const orphan = { ...completed, stream: "payment.payout.request-core-q" };
  const found: [Found, RegExp][] = [
    [{ events: [created, failed] }, /0 final outcomes/],
    [{ events: [created, failed, completed, second] }, /2 final outcomes/],
    [{ events: [] }, /lost/],
    [{ events: [created, failed, early] }, /100 ms before it was due/],
    [{ events: [created, failed, completed, orphan] }, /nobody asked for it/],
    [{ events: [created, { ...completed, metadata: { ...completed.metadata, causationId: "x" } }] }, /causationId/],
    [{ jobs: [job("e0")] }, /event e1: 0 jobs/],
    [{ jobs: [job("e0"), job("e1"), job("e1")] }, /event e1: 2 jobs, 2 announced/],
    [{ jobs: [job("e0"), job("e1"), job("e2")] }, /job e2: no event asked for it/],
    [
      { jobs: [job("e0"), { ...job("e1"), data: { tenant: "core", requestId: "p", amount: 1 } }] },
      /is not the reference/,
    ],
    [{ bytes: `...${SECRET}...` }, /Redis was told/],
    [{ keys: ["core:p:0", "core:p:1"] }, /the strange key core:p:1/],
  ];
  for (const [evidence, text] of found) assert.match(violations(evidence).join("\n"), text);
});
