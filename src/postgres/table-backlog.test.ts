import assert from "node:assert/strict";
import { test } from "node:test";
import { shares } from "./table-backlog.ts";
import { takersOf } from "./table-takers.ts";
import { takerSql } from "./type-condition.ts";

const TABLE = {
  eventType: "t.type",
  typeColumn: "t.type",
  key: "t.key",
  correlationId: "null",
  headersJson: "null::jsonb",
};

test("H1 pipelines that share a list of rules share its comparisons, and each event has one taker", () => {
  const rules = (mine: number) => ["a", "b.*"].map((pattern, at) => ({ pattern, mine: at === mine }));
  const takers = [
    { pipeline: "first", takes: rules(0) },
    { pipeline: "second", takes: rules(1) },
    { pipeline: "of another service", takes: [{ pattern: "c", mine: true }] },
    { pipeline: "idle", takes: [] },
  ];
  const shared = `case when t.type collate "C" = 'a' then 1 when t.type collate "C" like 'b.%' then 2 end`;
  assert.equal(takerSql(TABLE, takers), `coalesce(${shared}, case when t.type collate "C" = 'c' then 3 end, 0)`);
  assert.equal(takerSql(TABLE, [{ pipeline: "all", takes: null }]), "coalesce(case when true then 1 end, 0)");
  assert.equal(takerSql(TABLE, []), "coalesce(0)");
});

const known = (pipeline: string, more: object = {}) => ({
  pipeline,
  isServed: true,
  takes: [{ pattern: pipeline, mine: true }],
  isServiceAlive: true,
  ...more,
});

test("H1 what a service no longer serves takes nothing, and what is not served takes what it took", () => {
  const left = known("left", { isServed: false });
  assert.deepEqual(takersOf([known("kept"), left]).retired, ["left"], "its service runs without it");
  const crashed = known("crashed", { isServed: false, isServiceAlive: false });
  const beside = takersOf([known("kept"), crashed]);
  assert.deepEqual([beside.takers.map(({ pipeline }) => pipeline), beside.retired], [["kept", "crashed"], []]);
  const stopped = takersOf([left, crashed]);
  assert.deepEqual(stopped.takers.length, 2, "while nothing runs, all are as they were");
});

test("H1 a pipeline with unknown routes is not counted, unless it has the table for itself", () => {
  const older = known("older", { takes: undefined, isServed: false, isServiceAlive: false });
  assert.deepEqual(takersOf([older]).takers, [{ pipeline: "older", takes: null }]);
  const { takers, unknown } = takersOf([known("new"), older]);
  assert.deepEqual([takers.map(({ pipeline }) => pipeline), unknown], [["new"], ["older"]]);
});

test("A18 beyond the limit each pipeline has the share of the rest that it has at both ends", () => {
  const figure = (taker: number, count: number, oldestAgeMs: number) =>
    ({ part: 0, taker, state: "pending", count, oldestAgeMs }) as const;
  const first = [figure(1, 9_000, 900), figure(2, 1_000, 950)];
  const last = [figure(1, 5_000, 90), figure(3, 5_000, 80)];
  const found = shares(first, last, 110_000).map(({ count, oldestAgeMs, taker }) => [taker, count, oldestAgeMs]);
  assert.deepEqual(found, [
    [1, 9_000 + 70_000, 900],
    [2, 1_000 + 5_000, 950],
    [3, 25_000, 80],
  ]);
  const dead = { ...figure(1, 10_000, 990), state: "dead" } as const;
  const rest = shares([dead, ...first], last, 120_000).map(({ count }) => count);
  assert.deepEqual(rest, [79_000, 6_000, 25_000], "dead letters at the head have no share of the rest");
  assert.deepEqual(
    shares(first, last, 5).map(({ count }) => count),
    [9_000, 1_000, 5_000],
    "never less than was seen, whatever the statistics say",
  );
});
