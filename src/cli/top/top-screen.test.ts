import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { TopMeter } from "../../operations/overview/top-meter.ts";
import type { Status } from "../../operations/pipelines/status.ts";
import type { AnswerTimes } from "./answer-times.ts";
import { sparkline, topScreen } from "./top-screen.ts";

const PIPELINE: Status["pipelines"][number] = {
  pipeline: "orders.outbox->kafka",
  source: "orders.outbox",
  schema: "orders",
  table: "outbox",
  destination: "kafka",
  delivery: "at-least-once",
  lanes: 16,
  pause: null,
  limit: null,
  log: null,
  subscriber: null,
  state: "running",
  isServed: true,
  ownedLanes: 16,
  freeLanes: 0,
  pending: 12_345,
  isEstimate: true,
  oldestAgeMs: 240_000,
  countProblem: null,
  retrying: 2,
  parkedKeys: 1,
  behindDeadLetters: 4,
  deadLetters: 3,
};

const STATUS: Status = {
  relaySchema: "outbox_relay",
  schemaVersion: 7,
  pipelines: [PIPELINE, { ...PIPELINE, pipeline: "billing.\u001b[2Joutbox->nats", state: "paused", pending: null }],
  unrouted: [{ source: "orders.outbox", events: 2, isEstimate: false, oldestAgeMs: 1_000 }],
  instances: [
    { id: "i1", name: "host/1", joinedAt: "", leaseRemainingMs: 9_000, pipelines: [PIPELINE.pipeline], lanes: 16 },
  ],
  grade: "attention",
  causes: [
    {
      ...{ code: "dead-letters", grade: "attention", pipeline: PIPELINE.pipeline, source: "orders.outbox" },
      ...{ destination: "kafka", what: "orders.outbox->kafka has 3 dead letters", fix: null },
      ...{ since: "2026-01-02T03:00:05Z", link: "/#/dead-letters" },
    },
  ],
  problems: ["orders.outbox->kafka has 3 dead letters"],
};

const QUICK = { requests: 10, p50Ms: 12, p99Ms: 40.4 };
const ANSWERS: AnswerTimes = {
  destinations: [
    { relay: "host:3012", destination: "kafka", answers: { lastMinute: QUICK, lastFiveMinutes: QUICK, slow: null } },
    {
      ...{ relay: "host:3012", destination: "crm" },
      answers: {
        lastMinute: { requests: 3, p50Ms: 3_000, p99Ms: 3_200 },
        lastFiveMinutes: { requests: 0, p50Ms: null, p99Ms: null },
        slow: { since: "2026-01-02T03:00:05Z", presentMs: 3_000, usualMs: 12 },
      },
    },
  ],
  problems: ["The relay at other:3012 says nothing of answer times: refused"],
};

function snapshot(status: Status = STATUS) {
  const meter = new TopMeter();
  for (let second = 0; second <= 10; second += 1) {
    meter.sample(second * 1_000, new Map([[PIPELINE.pipeline, BigInt(second * (second < 9 ? 100 : 200))]]));
  }
  return { meter, snapshot: meter.snapshot(status, Date.parse("2026-01-02T03:04:05Z")) };
}

function screen(columns: number, rows: number, status?: Status, isColoured = false): readonly string[] {
  const { meter, snapshot: shown } = snapshot(status);
  return topScreen({
    snapshot: shown,
    answers: ANSWERS,
    rates: meter.paces,
    problem: null,
    size: { columns, rows },
    isColoured,
  });
}

describe("G6 outbox-relay top", () => {
  test("G6 shows rates from differences, the backlog, parked keys, dead letters, instances and problems", () => {
    const { snapshot: shown, meter } = snapshot();
    assert.equal(shown.pipelines[0]?.publishedPerSecond, 350, "1,400 in the last four seconds");
    assert.equal(shown.pending, null, "one pipeline could not be counted");
    assert.equal(meter.paces.length, 10);
    const lines = screen(120, 30);
    const row = lines.find((line) => line.startsWith("orders.outbox->kafka "));
    assert.match(row ?? "", /running {2,}350 {2,}~12,345 {2,}4 min {2,}2 {2,}1 {2,}~4 {2,}3 {2,}16\/16$/);
    assert.match(lines[1] ?? "", /^350\/s out {2}\? pending {2}oldest 4 min {2}2 parked {2}6 dead {2}/);
    assert.match(lines[1] ?? "", / {2}1 instance {2}health attention$/);
    assert.match(lines[2] ?? "", /^[▁-█]{10}$/);
    assert.ok(lines.includes("host/1  16 lanes  lease 9.0 s"));
    assert.ok(lines.includes("! orders.outbox->kafka has 3 dead letters"));
    assert.equal(lines.at(-1), "q quits");
  });

  test("H1 G6 unrouted events have a row of their own, marked where their number is an estimate", () => {
    const rowOf = (lines: readonly string[]) => lines.find((line) => /^orders\.outbox {2}/.test(line)) ?? "";
    const lines = screen(120, 30);
    assert.match(rowOf(lines), /^orders\.outbox +unrouted +- +2 +1\.0 s +- +- +- +- +-$/, lines.join("\n"));
    assert.match(lines[1] ?? "", / {2}2 unrouted {2}/);
    const unrouted = [{ source: "orders.outbox", events: 12_000, isEstimate: true, oldestAgeMs: null }];
    const estimated = screen(120, 30, { ...STATUS, unrouted });
    assert.match(rowOf(estimated), /unrouted +- +~12,000 +- /);
    assert.match(estimated[1] ?? "", / {2}~12,000 unrouted {2}/);
    const many = {
      ...STATUS,
      pipelines: Array.from({ length: 50 }, (_, at) => ({ ...PIPELINE, pipeline: `p${at}->x` })),
    };
    assert.match(rowOf(screen(120, 24, many)), /unrouted/, "however many pipelines there are");
    assert.ok(screen(120, 24, many).some((line) => /^… and \d+ more pipelines$/.test(line)));
  });

  test("H1 G6 shows how long destinations take to answer, over one and five minutes, and which are slow", () => {
    const lines = screen(120, 40);
    assert.ok(lines.includes("ANSWERS OF    P50 1M    P99 1M  P50 5M  P99 5M  RELAY"), lines.join("\n"));
    assert.ok(lines.includes("kafka          12 ms     40 ms   12 ms   40 ms  host:3012"));
    assert.ok(
      lines.includes("crm         3,000 ms  3,200 ms       -       -  host:3012  slow: 3,000 ms, usually 12 ms"),
    );
    assert.ok(lines.includes("! The relay at other:3012 says nothing of answer times: refused"));
  });

  test("G6 fits every terminal: drops columns, shortens names, counts hidden rows", () => {
    const many = {
      ...STATUS,
      pipelines: Array.from({ length: 50 }, (_, at) => ({ ...PIPELINE, pipeline: `p${at}->x` })),
    };
    for (const columns of [20, 40, 80, 200]) {
      for (const rows of [5, 10, 24, 100]) {
        const lines = screen(columns, rows, many);
        assert.ok(lines.length <= rows, `${lines.length} lines in ${rows}`);
        assert.ok(
          lines.every((line) => line.length <= columns),
          `${columns}: ${lines.find((line) => line.length > columns)}`,
        );
      }
    }
    assert.ok(screen(80, 24, many).some((line) => /^… and \d+ more pipelines$/.test(line)));
    assert.ok(!screen(50, 24).some((line) => line.includes("LANES")));
    assert.ok(screen(50, 24).some((line) => line.includes("DEAD")));
  });

  test("G6 no name can control the terminal, and without colours there are no escapes", () => {
    assert.ok(screen(120, 30).every((line) => !line.includes("\u001b")));
    const coloured = screen(120, 30, STATUS, true).join("\n");
    assert.ok(!coloured.includes("\u001b[2J"));
    assert.ok(coloured.includes("running\u001b[39m") && coloured.includes("\u001b[32m"));
  });

  test("G6 an empty database is not an error", () => {
    const lines = screen(80, 24, { ...STATUS, pipelines: [], instances: [], grade: "ok", causes: [], problems: [] });
    assert.ok(lines.includes("No pipelines yet: no relay has run here."));
    assert.ok(lines.includes("No live instances."));
    assert.equal(sparkline([], 80), "");
    assert.equal(sparkline([0, 5, 10], 2), "▅█");
  });
});
