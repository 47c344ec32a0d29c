import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";
import type { PostgresServer } from "../../../../test/servers/postgres.ts";
import { BACKLOG_EXACT_MAX, type Grant, type PipelineSpec } from "../../../ports/queue-store.ts";
import { writeSettings } from "../../../postgres/lanes.ts";
import { type Database, openDatabase } from "../../../postgres/pool.ts";
import { sampleSql } from "../../../postgres/table-backlog.ts";
import { openTransaction } from "../../../postgres/transaction.ts";
import { countedTable } from "../counted-table.ts";
import { claimSql } from "./claim.sql.ts";
import { BY_ID_SETTINGS, CLAIM_SETTINGS } from "./claim.ts";
import { type Fixture, openFixture, ROLE, startServer } from "./fixture.test.ts";
import { openOutboxShape, type QueueScope } from "./openoutbox-table.ts";
import { markSql } from "./settle.sql.ts";

const ROWS = 200_000;
const HELD_KEYS = 1_000;
const SPEC: PipelineSpec = {
  name: "plans",
  types: [
    { pattern: "other.*", mine: false },
    { pattern: "*", mine: true },
  ],
  lanes: 4,
  attemptsMax: 25,
  payloadBytesMax: 1_000_000,
  headersMax: 100,
};

interface PlanNode {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Index Name"?: string;
  readonly "Actual Rows": number;
  readonly "Actual Loops": number;
  readonly "Rows Removed by Filter"?: number;
  readonly Filter?: string;
  readonly "Subplan Name"?: string;
  readonly Plans?: readonly PlanNode[];
}

const nodesOf = (node: PlanNode): PlanNode[] => [node, ...(node.Plans ?? []).flatMap(nodesOf)];

const UNNUMBERED = {
  rooms: new Map(Array.from({ length: SPEC.lanes }, (_, lane) => [lane, 500])),
  lastNumber: 0,
  hasOrderIndex: true,
};

for (const version of [15, 18] as const) {
  describe(`plans of PostgreSQL ${version} with ${ROWS} events of one transaction and ${HELD_KEYS} holds`, () => {
    let server: PostgresServer;
    let fixture: Fixture;
    let database: Database;
    let scope: QueueScope;
    let grants: readonly [Grant, ...Grant[]];

    before(async () => {
      server = await startServer(version);
      fixture = await openFixture(server);
      database = openDatabase({ url: server.databaseUrl("postgres", ROLE), relaySchema: fixture.relaySchema });
      grants = await fill(fixture);
      const { name: pipeline, types, attemptsMax } = SPEC;
      const lock = { lockPrefix: "", attemptsMax, types };
      scope = { shape: openOutboxShape(fixture.name), tables: fixture.own, pipeline, laneCount: 4, ...lock };
    });
    after(async () => {
      await database.close();
      await fixture[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    });

    async function explain(text: string, settings: Readonly<Record<string, string>>): Promise<PlanNode[]> {
      const explained = `explain (analyze, timing off, format json) ${text}`;
      const options = { ...writeSettings(database, "explaining"), statementTimeoutMs: 60_000, settings };
      const open = await openTransaction(database.pool, options, explained);
      // Ended by a rollback, so each test finds the same rows.
      await open.end();
      const [{ Plan }] = JSON.parse(open.firstRows[0]?.[0] ?? "") as [{ Plan: PlanNode }];
      return nodesOf(Plan);
    }

    function claimOf(request: { exceptKeys?: string[]; exceptTypes?: string[] }): Promise<PlanNode[]> {
      const { exceptKeys = [], exceptTypes = [] } = request;
      const options = { spec: SPEC, grants, rows: 500, bytes: 10_000_000, ...UNNUMBERED };
      return explain(claimSql(scope, { exceptKeys, exceptTypes, ...options }), CLAIM_SETTINGS);
    }

    function assertInIndexOrder(nodes: readonly PlanNode[]): void {
      // Only what was picked is sorted, to count it by lane.
      const isCostly = (node: PlanNode) =>
        /Seq Scan|Materialize/.test(node["Node Type"]) || (/Sort/.test(node["Node Type"]) && node["Actual Rows"] > 500);
      assert.deepEqual(
        nodes.filter(isCostly).map((node) => node["Node Type"]),
        [],
      );
      const scans = nodes.filter((node) => node["Relation Name"] === fixture.name.table);
      const walk =
        scans.find((node) => /hashed SubPlan/.test(node.Filter ?? "")) ?? assert.fail("no scan leaves holds out");
      assert.match(walk["Index Name"] ?? "", /available_at_created_at/);
      assert.doesNotMatch((walk.Filter ?? "").replaceAll("hashed SubPlan", ""), /SubPlan/);
      const visited = walk["Actual Rows"] + (walk["Rows Removed by Filter"] ?? 0);
      assert.ok(visited < 2_000, `${visited} rows were visited to claim 500`);
      const marked =
        scans.find((node) => node["Node Type"] === "Tid Scan") ?? assert.fail("rows are not found by ctid");
      assert.equal(marked["Actual Loops"], 500);
    }

    test("a claim walks the index in order, visits few rows and hashes the holds", async () => {
      assertInIndexOrder(await claimOf({}));
    });

    test("A18 the backlog is counted by the index of each status and stops at its limit", async () => {
      const takers = [{ pipeline: SPEC.name, takes: SPEC.types }];
      const text = sampleSql(countedTable(scope.shape, database.tables, "main"), database.tables, takers, "first");
      const nodes = await explain(text, { jit: "off", work_mem: "64MB" });
      const scans = nodes.filter((node) => node["Relation Name"] === fixture.name.table);
      assert.ok(scans.every((node) => node["Node Type"] !== "Seq Scan"));
      const waiting = scans.find((node) => /available_at_created_at/.test(node["Index Name"] ?? ""));
      assert.equal(waiting?.["Actual Rows"], BACKLOG_EXACT_MAX + 1);
      assert.doesNotMatch((waiting?.Filter ?? "").replaceAll("hashed SubPlan", ""), /SubPlan/);
    });

    test("a claim that leaves keys out does too", async () => {
      assertInIndexOrder(await claimOf({ exceptKeys: Array.from({ length: 1_000 }, (_, index) => `k${index * 7}`) }));
    });

    test("a claim that leaves types out hashes the keys that wait for them", async () => {
      assertInIndexOrder(await claimOf({ exceptTypes: ["t1"] }));
    });

    test("a claim whose lanes are gone visits nothing", async () => {
      const [first] = grants;
      const stale = { ...first, epoch: first.epoch - 1n };
      const options = { spec: SPEC, exceptKeys: [], exceptTypes: [], rows: 500, bytes: 1_000, ...UNNUMBERED };
      const nodes = await explain(claimSql(scope, { ...options, grants: [stale] }), CLAIM_SETTINGS);
      for (const node of nodes.filter((node) => node["Relation Name"] === fixture.name.table)) {
        assert.equal(node["Actual Rows"], 0);
        assert.equal(node["Rows Removed by Filter"] ?? 0, 0);
      }
    });

    test("a settle looks its rows up by primary key, whatever else is being delivered", async () => {
      await fixture.admin.query(
        `update ${fixture.table} set status = 'DELIVERING', locked_by = 'x', locked_at = now()
         where event_id in (select event_id from ${fixture.table} limit 5000)`,
      );
      const ids = await fixture.ids("status = 'DELIVERING' limit 100");
      const [grant] = grants;
      const nothing = { failed: [], suspects: [], releasedHolds: ids };
      const batches = { previousBatch: 0n, batch: 1n, ledger: "none" as const };
      const settlement = { grant, ...batches, delivered: ids.slice(50), handedBack: ids.slice(0, 50), ...nothing };
      const nodes = await explain(markSql(scope, settlement), BY_ID_SETTINGS);
      const used = nodes.flatMap((node) => node["Index Name"] ?? []).filter((name) => name.startsWith("openoutbox"));
      assert.ok(used.length === 2 && used.every((name) => name.endsWith("_pkey")), used.join(", "));
      assert.equal(nodes.filter((node) => node["Node Type"] === "Seq Scan").length, 0);
    });
  });
}

async function fill(fixture: Fixture): Promise<readonly [Grant, ...Grant[]]> {
  const { admin, own, table } = fixture;
  const source = fixture.source();
  const store = source.pipeline(SPEC);
  await store.prepare();
  const id = randomUUID();
  await source.membership.join({ id, name: "plans", leaseMs: 600_000, pipelines: [SPEC.name] });
  const [first, ...others] = (await store.takeOver(id, [0, 1, 2, 3])).map(({ grant }) => grant);
  await admin.query(
    `insert into ${table} (event_id, event_type, partition_key, payload)
     select gen_random_uuid(), 't' || i % 5, 'k' || i % 9000, '\\x00' from generate_series(1, ${ROWS}) i`,
  );
  await admin.query(
    `insert into ${own.holds} (pipeline, lane, event_id, event_key, state, parks, attempts, next_at, reason)
     select $1, 0, event_id, partition_key, 'retrying', true, 1, now() + interval '1 hour', 'held'
     from (select distinct on (partition_key) * from ${table} order by partition_key limit ${HELD_KEYS}) t`,
    [SPEC.name],
  );
  await admin.query(`analyze ${table}; analyze ${own.holds}`);
  return [first ?? assert.fail("no lane was taken"), ...others];
}
