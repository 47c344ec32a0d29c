import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { test } from "node:test";
import { freePort } from "../../../test/servers/free-port.ts";
import type { Clock } from "../../core/clock.ts";
import { systemClock } from "../../core/clock.ts";
import type { CauseCode, Grade } from "../../core/health-cause.ts";
import { translateError } from "../../postgres/errors.ts";
import { BrokerCheck } from "./broker-check.ts";
import { DatabaseCheck } from "./database-check.ts";
import { type HealthFacts, healthOf, readinessOf } from "./health.ts";
import { FACTS, NOW } from "./health-fixture.test.ts";

const counted = (pending: number, isEstimate = false, more = { behindDead: 0, dead: 0 }) => ({
  pipeline: "a.outbox->kafka",
  source: "a.outbox",
  destination: "kafka",
  schema: "a",
  last: { pending, isEstimate, oldestAgeMs: null, ...more },
  lagMs: 0,
});

/** As the relay reports an error of a server with these messages. */
function reported(code: string, message: string): string {
  const error = Object.assign(new Error(message), { code, severity: "FEHLER" });
  return translateError(error, { doing: "settling", table: "b.outbox", role: "relay" }).message;
}

test("H1 A20 health is public, and shows nothing that the database or a receiver quotes of an event, in no language", () => {
  const reasons = [
    [reported("22P02", 'invalid input syntax for type uuid: "cust-7"'), "(SQLSTATE 22P02)"],
    [reported("22P02", "ungültige Eingabesyntax für Typ uuid: »cust-7«"), "(SQLSTATE 22P02)"],
    [reported("23514", "Fehlgeschlagene Zeile enthält (1, cust-7)"), "a constraint of the table refused the row"],
    [reported("P0001", "cust-7 (SQLSTATE 42P01) [FENCED] cust-7 failed: cust-7"), "a trigger or function refused it"],
    [
      "2 delivered events cannot be marked. Ids: a) [x], cust-7 [ROW_UNMARKED] Remove it",
      "marked. [ROW_UNMARKED] Remove",
    ],
    [
      "Several rows of b.outbox have the id cust-7; only one of them was sent [ID_NOT_UNIQUE] Make the id unique",
      "have the same id; only one",
    ],
    ["http://h answered 503; it said: no place for cust-7", "http://h answered 503"],
  ];
  for (const [reason = "", shown = ""] of reasons) {
    const broken = [{ pipeline: "b.outbox->kafka", code: "DATABASE_REFUSED", reason } as const];
    const failedChores = [{ pipeline: "c.outbox->kafka", chore: "prune", reason }];
    const health = healthOf({ ...FACTS, broken, failedChores });
    assert.ok(health.problems?.[0]?.reason.includes(shown), health.problems?.[0]?.reason);
    assert.doesNotMatch(JSON.stringify(health), /cust-7/);
  }
});

test("A18 a healthy relay, idle or not, has exactly the documented fields", () => {
  assert.deepEqual(healthOf({ ...FACTS, backlog: [counted(3), counted(4)] }), {
    status: "healthy",
    grade: "ok",
    causes: [],
    service: "outbox-relay",
    timestamp: "2026-01-10T12:00:00.000Z",
    uptime: 3_600,
    lastPollTime: "2026-01-10T11:59:59.000Z",
    unpublishedEventCount: 7,
  });
  assert.equal(healthOf({ ...FACTS, backlog: [counted(0)] }).status, "healthy");
});

test("A18 A7 a broken part makes the health degraded and is named", () => {
  const broken = [{ pipeline: "b.outbox->kafka", code: "TABLE_MISSING", reason: "it does not exist" } as const];
  const degraded = healthOf({ ...FACTS, broken });
  assert.equal(degraded.status, "degraded");
  assert.deepEqual(degraded.problems, [{ part: "source", name: "b.outbox->kafka", reason: "it does not exist" }]);
  const warnings = [{ pipeline: "b.outbox->kafka", code: "ROWS_HIDDEN", reason: "hidden rows" } as const];
  const warned = healthOf({ ...FACTS, warnings });
  assert.deepEqual([warned.status, warned.problems?.[0]?.reason], ["degraded", "hidden rows"]);
  const circuits = [{ destination: "kafka", topic: "t", reason: "unknown topic" }];
  assert.equal(healthOf({ ...FACTS, circuits }).problems?.[0]?.name, "kafka topic t");
  const silent = healthOf({ ...FACTS, unreachable: ["kafka"] });
  assert.deepEqual([silent.status, silent.problems?.length], ["degraded", 1]);
  const health = {
    ...FACTS,
    unreachable: ["kafka"],
    circuits: [{ destination: "kafka", topic: null, reason: "down" }],
  };
  assert.equal(healthOf(health).problems?.length, 1, "one problem is reported once");
});

test("H1 a lane whose brake is on is named, with what to do", () => {
  const degraded = healthOf({ ...FACTS, brakedLanes: [{ pipeline: "b.outbox->kafka", lane: 2, holds: 10_000 }] });
  assert.equal(degraded.status, "degraded");
  assert.match(degraded.problems?.[0]?.reason ?? "", /^lane 2 reads no new events: .*10000 failed events.*discard/);
});

test("A18 a database that does not answer, or a poll too long ago, is unhealthy", () => {
  const gone = healthOf({ ...FACTS, database: { answers: false, reason: "refused" } });
  assert.deepEqual(
    [gone.status, gone.problems?.[0]],
    ["unhealthy", { part: "database", name: "postgres", reason: "refused" }],
  );
  assert.equal(gone.unpublishedEventCount, null, "not countable");
  assert.equal(healthOf({ ...FACTS, lastPollMs: NOW - 30_000 }).status, "healthy");
  assert.equal(healthOf({ ...FACTS, lastPollMs: NOW - 30_001 }).status, "unhealthy");
  const slow = { ...FACTS, pollIntervalMs: 20_000, lastPollMs: NOW - 60_000 };
  assert.equal(healthOf(slow).status, "healthy", "three intervals are allowed where they are longer");
  assert.equal(healthOf({ ...FACTS, uptimeS: 2, lastPollMs: null }).status, "degraded");
  assert.equal(healthOf({ ...FACTS, uptimeS: 31, lastPollMs: null }).status, "unhealthy");
});

test("A18 before the first count the relay is not healthy, and its count is null", () => {
  const early = healthOf({ ...FACTS, backlog: [{ ...counted(0), last: null }] });
  assert.deepEqual([early.status, early.unpublishedEventCount], ["degraded", null]);
  assert.equal(early.problems?.[0]?.reason, "events are not counted yet");
});

test("A18 a count says whether it is an estimate", () => {
  const health = healthOf({ ...FACTS, backlog: [counted(1_000_000, true)] });
  assert.deepEqual([health.unpublishedEventCount, health.isEstimate], [1_000_000, true]);
});

class SetClock implements Clock {
  nowMs = 0;
  wallMs = () => this.nowMs;
  monotonicMs = () => this.nowMs;
  sleep = async () => {};
}

test("A18 a hanging database delays nothing, and none is queried while the relay's own work proves that it answers", async () => {
  const clock = new SetClock();
  let asked = 0;
  const check = new DatabaseCheck(clock, () => {
    asked += 1;
    return new Promise<void>(() => {});
  });
  check.answered();
  clock.nowMs += 4_999;
  assert.deepEqual([await check.state(), asked], [{ answers: true, reason: null }, 0]);
  clock.nowMs += 1;
  const silent = { answers: false, reason: "it did not answer within 1000 ms" };
  assert.deepEqual([await check.state(), await check.state(), asked], [silent, silent, 1]);
  const refusing = new DatabaseCheck(systemClock, async () => {
    throw new Error("no");
  });
  assert.deepEqual(await refusing.state(), { answers: false, reason: "no" });
});

test("A18 an idle relay notices that its brokers are gone", async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  const [closedPort, clock] = [await freePort(), new SetClock()];
  const check = new BrokerCheck(clock, [`127.0.0.1:${closedPort}`, `127.0.0.1:${port}`]);
  assert.equal(await check.isReachable(), true, "one reachable broker is enough");
  server.close();
  assert.equal(await check.isReachable(), true, "not asked again so soon");
  clock.nowMs += 30_000;
  assert.equal(await check.isReachable(), false);
  check.delivered();
  assert.equal(await check.isReachable(), true);
  assert.equal(await new BrokerCheck(clock, []).isReachable(), true, "without brokers nothing can be unreachable");
});

test("A18 C8 readiness depends on the database and the loops only", () => {
  const fine = { answers: true, reason: null };
  assert.deepEqual(readinessOf(fine, FACTS), { isReady: true, checks: { database: "ok", loops: "ok" } });
  const refused = readinessOf({ answers: false, reason: "refused" }, FACTS);
  assert.deepEqual(refused, { isReady: false, checks: { database: "refused", loops: "ok" } });
  const still = readinessOf(fine, { ...FACTS, lastPollMs: NOW - 31_000 });
  assert.deepEqual([still.isReady, still.checks.loops], [false, "no source could be polled for 31 s"]);
  assert.ok(readinessOf(fine, { ...FACTS, lastPollMs: NOW - 31_000, pollIntervalMs: 11_000 }).isReady, "a slow table");
  assert.ok(readinessOf(fine, { ...FACTS, lastPollMs: null, uptimeS: 5 }).isReady, "it has just started");
  assert.equal(readinessOf(fine, { ...FACTS, lastPollMs: null, uptimeS: 31 }).isReady, false);
});

const P = "crm.outbox->kafka";
const HOUR_AGO = new Date(NOW - 3_600_000).toISOString();
const WELL = { pipeline: P, deadLetters: 0, deadSince: null, parkedKeys: 0, parkedSince: null, pause: null };
const PAUSED = { ...WELL, pause: { at: HOUR_AGO, by: "anna" } };
const OTHER = "shop.outbox->kafka";

/** What happens, the expected code and grade, and the screen and chapter that the cause links to. */
const CASES: readonly (readonly [string, Partial<HealthFacts>, CauseCode, Grade, RegExp, RegExp])[] = [
  [
    "3,000 dead letters",
    { pipelines: [{ ...WELL, deadLetters: 3_000, deadSince: HOUR_AGO }] },
    ...([
      "dead-letters",
      "attention",
      /has 3,000 dead letters/,
      /^\/#\/dead-letters\?q=source:crm\.outbox\+destination:kafka$/,
    ] as const),
  ],
  [
    "parked keys",
    { pipelines: [{ ...WELL, parkedKeys: 200, parkedSince: HOUR_AGO }] },
    ...([
      "keys-parked",
      "attention",
      /^200 keys of crm\.outbox->kafka are parked/,
      /^\/#\/keys\?pipeline=crm/,
    ] as const),
  ],
  [
    "one paused pipeline of two",
    { pipelines: [PAUSED, { ...WELL, pipeline: OTHER }] },
    ...(["pipeline-paused", "attention", /is paused by anna/, /^\/#\/pipelines\?open=crm/] as const),
  ],
  [
    "all pipelines of a destination paused",
    { pipelines: [PAUSED, { ...PAUSED, pipeline: OTHER, pause: { at: null, by: "bob" } }] },
    ...([
      "destination-paused",
      "attention",
      /^All 2 pipelines to kafka are paused by anna, bob/,
      /destinations\/kafka$/,
    ] as const),
  ],
  [
    "a slow destination",
    { slow: [{ destination: "kafka", presentMs: 3_000, usualMs: 150, sinceMs: NOW - 3_600_000 }] },
    ...([
      "destination-slow",
      "attention",
      /median response time is 3\.0 s, usually 150 ms/,
      /^\/#\/destinations\/kafka$/,
    ] as const),
  ],
  [
    "types that no relay handles",
    { untaken: [{ pipeline: P, types: 2, sinceMs: NOW - 3_600_000 }] },
    ...([
      "types-untaken",
      "attention",
      /^No running relay handles 2 types of events in crm\.outbox$/,
      /^\/#\/events\?q=state:unrouted\+source:crm\.outbox$/,
    ] as const),
  ],
  [
    "a chore that fails",
    { failedChores: [{ pipeline: P, chore: "prune", reason: "permission denied", sinceMs: NOW - 3_600_000 }] },
    ...(["chore-failed", "attention", /"prune" fails: permission denied/, /^\/#\/pipelines\?open=crm/] as const),
  ],
  [
    "failed upkeep of a managed outbox",
    { upkeep: { reason: "must be owner of table outbox [DATABASE_REFUSED] Make it so.", sinceMs: NOW - 3_600_000 } },
    ...([
      "upkeep-failed",
      "degraded",
      /upkeep of a managed outbox failed.*owner of table outbox$/,
      /^\/#\/pipelines$/,
    ] as const),
  ],
  [
    "a settle that never succeeds",
    { broken: [{ pipeline: P, code: "DATABASE_BUSY", reason: "lock timeout", sinceMs: NOW - 3_600_000 }] },
    ...(["source-broken", "degraded", /cannot be read or marked: lock timeout/, /^\/#\/pipelines\?open=crm/] as const),
  ],
  [
    "a lane that fails at every attempt",
    { failingLanes: [{ pipeline: P, lane: 3, reason: "connection reset", sinceMs: NOW - 3_600_000 }] },
    ...([
      "lane-failing",
      "degraded",
      /lane 3 delivers nothing.*connection reset/,
      /^\/#\/pipelines\?open=crm/,
    ] as const),
  ],
  [
    "a lane whose brake is on",
    { brakedLanes: [{ pipeline: P, lane: 3, holds: 10_000, sinceMs: NOW - 3_600_000 }] },
    ...(["lane-braked", "degraded", /lane 3 reads no new events/, /^\/#\/keys\?pipeline=/] as const),
  ],
  [
    "a pipeline that delivers nothing",
    { stalled: [{ pipeline: P, pending: 1_234, forMs: 90_000 }] },
    ...([
      "pipeline-stalled",
      "degraded",
      /1,234 events wait, and none has been delivered for 90 s/,
      /open=crm/,
    ] as const),
  ],
  [
    "a destination that accepts nothing",
    { circuits: [{ destination: "kafka", topic: null, reason: "refused", sinceMs: NOW - 3_600_000 }] },
    ...(["circuit-open", "degraded", /^kafka accepts no events: refused/, /^\/#\/destinations\/kafka$/] as const),
  ],
  [
    "a database that does not answer",
    { database: { answers: false, reason: "refused" } },
    ...(["database-unreachable", "down", /database postgres: refused/, /^\/#\/$/] as const),
  ],
];

const read = (path: string) => readFileSync(new URL(`../../../${path}`, import.meta.url), "utf8");
const SCREENS = new Set(
  [...read("console/src/screens/screens.tsx").matchAll(/^ {2}\["([^"]+)", /gm)].map((it) => it[1]),
);

function isChapter(runbook: string): boolean {
  const [file = "", chapter = ""] = runbook.split("#");
  const titles = [...read(file).matchAll(/^## (.+)$/gm)].map((it) => it[1]?.toLowerCase().replaceAll(" ", "-"));
  return titles.includes(chapter);
}

for (const [name, facts, code, grade, what, link] of CASES) {
  test(`H1 ${name}: ${grade}, with its cause and the link to its screen`, () => {
    const health = healthOf({ ...FACTS, ...facts });
    assert.deepEqual([health.grade, health.causes.map((cause) => cause.code)], [grade, [code]]);
    const [cause] = health.causes;
    assert.match(cause?.what ?? "", what);
    assert.match(cause?.link ?? "", link);
    const path = (cause?.link ?? "")
      .slice(2)
      .replace(/\?.*$/, "")
      .replace(/^\/destinations\/.+/, "/destinations/:name");
    assert.ok(SCREENS.has(path), `${path} is a screen of the console`);
    if (cause?.runbook !== undefined) assert.ok(isChapter(cause.runbook), cause.runbook);
    const status = grade === "attention" ? "healthy" : grade === "degraded" ? "degraded" : "unhealthy";
    assert.equal(health.status, status, "the status for programs keeps its meaning");
    assert.equal(health.problems?.length ?? 0, grade === "attention" ? 0 : 1);
  });
}

test("H1 the worst cause sets the grade and comes first, and each says since when", () => {
  const facts = Object.assign({}, ...CASES.map(([, some]) => some)) as Partial<HealthFacts>;
  const { causes, grade } = healthOf({ ...FACTS, ...facts });
  assert.equal(grade, "down");
  const grades = causes.map((cause) => cause.grade);
  assert.deepEqual(
    grades,
    [...grades].sort((left, right) => ORDER.indexOf(left) - ORDER.indexOf(right)),
  );
  assert.deepEqual(
    causes.filter(({ since }) => since === null),
    [],
  );
});

const ORDER: readonly Grade[] = ["down", "degraded", "attention", "ok"];

test("H1 a chore of a source that cannot be read is no second cause", () => {
  const broken = [{ pipeline: P, code: "DATABASE_BUSY", reason: "busy" } as const];
  const failedChores = [{ pipeline: P, chore: "prune", reason: "busy" }];
  assert.equal(healthOf({ ...FACTS, broken, failedChores }).causes.length, 1);
});
