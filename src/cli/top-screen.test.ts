import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { TopMeter } from "../operations/overview/top-meter.ts";
import type { Status } from "../operations/status.ts";
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
  deadLetters: 3,
};

const STATUS: Status = {
  relaySchema: "outbox_relay",
  schemaVersion: 7,
  pipelines: [PIPELINE, { ...PIPELINE, pipeline: "billing.\u001b[2Joutbox->nats", state: "paused", pending: null }],
  instances: [
    { id: "i1", name: "host/1", joinedAt: "", leaseRemainingMs: 9_000, pipelines: [PIPELINE.pipeline], lanes: 16 },
  ],
  problems: ["orders.outbox->kafka has 3 dead letters"],
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
  return topScreen({ snapshot: shown, paces: meter.paces, trouble: null, size: { columns, rows }, isColoured });
}

describe("G6 outbox-relay top", () => {
  test("G6 shows rates by differences, what waits, what is parked and dead, instances and problems", () => {
    const { snapshot: shown, meter } = snapshot();
    assert.equal(shown.pipelines[0]?.publishedPerSecond, 350, "1,400 in the last four seconds");
    assert.equal(shown.pending, null, "one pipeline could not be counted");
    assert.equal(meter.paces.length, 10);
    const lines = screen(120, 30);
    const row = lines.find((line) => line.startsWith("orders.outbox->kafka "));
    assert.match(row ?? "", /running {2,}350 {2,}~12,345 {2,}4 min {2,}2 {2,}1 {2,}3 {2,}16\/16$/);
    assert.match(lines[1] ?? "", /^350\/s out {2}\? pending {2}oldest 4 min {2}2 parked {2}6 dead {2}1 instance$/);
    assert.match(lines[2] ?? "", /^[▁-█]{10}$/);
    assert.ok(lines.includes("host/1  16 lanes  lease 9.0 s"));
    assert.ok(lines.includes("! orders.outbox->kafka has 3 dead letters"));
    assert.equal(lines.at(-1), "q quits");
  });

  test("G6 fits into every terminal: columns go, names are cut, what is too much is counted", () => {
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

  test("G6 no name steers the terminal, and without colours there is no escape at all", () => {
    assert.ok(screen(120, 30).every((line) => !line.includes("\u001b")));
    const coloured = screen(120, 30, STATUS, true).join("\n");
    assert.ok(!coloured.includes("\u001b[2J"));
    assert.ok(coloured.includes("\u001b[32mrunning\u001b[0m"));
  });

  test("G6 an empty database is no error", () => {
    const lines = screen(80, 24, { ...STATUS, pipelines: [], instances: [], problems: [] });
    assert.ok(lines.includes("No pipeline yet: no relay has run here."));
    assert.ok(lines.includes("No living instance."));
    assert.equal(sparkline([], 80), "");
    assert.equal(sparkline([0, 5, 10], 2), "▅█");
  });
});
