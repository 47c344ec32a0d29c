import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { ListedLog } from "../../src/operations/log-list.ts";
import { type Ended, runCommand } from "./service-process.ts";
import { serverOfFile } from "./service-stage.ts";
import { openStage, type Stage } from "./stage.ts";

const server = serverOfFile();
let stages = 0;

/** A database with a managed outbox that the command itself has created. */
async function stageWithLog(settings: Readonly<Record<string, string>> = {}) {
  stages += 1;
  const stage = await openStage(server(), { database: `logs_${stages}`, tables: [] });
  const env = { DATABASE_URL: stage.url, OUTBOX_MANAGED: "shop.log", OUTBOX_DESTINATION: "stdout:", ...settings };
  const { code, stderr, stdout } = await runCommand(["migrate", "up"], env);
  assert.equal(code, 0, stderr);
  assert.match(stdout, /shop\.log: created, a managed outbox/);
  return Object.assign(stage, { env });
}

async function publish({ sql }: Stage, count: number, { type = "order.placed", key = "k" } = {}): Promise<void> {
  await sql("select shop.log_publish($1, $2 || n % 5, '{\"n\": ' || n || '}') from generate_series(1, $3::int) n", [
    type,
    key,
    count,
  ]);
}

const printed = ({ stdout }: Pick<Ended, "stdout">): { type: string; key: string; payload: { n: number } }[] =>
  stdout
    .split("\n")
    .filter((line) => line.startsWith('{"id":'))
    .map((line) => JSON.parse(line));

async function logs(env: Readonly<Record<string, string>>): Promise<readonly ListedLog[]> {
  const { code, stderr, stdout } = await runCommand(["log", "list", "-o", "json"], env);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout) as ListedLog[];
}

describe("logs of the service", { concurrency: 2 }, () => {
  test("D9 A1: migrate creates a managed outbox, its function writes, and each event is delivered once", async () => {
    await using it = await stageWithLog();
    await publish(it, 20);
    const first = await runCommand(["run", "--once"], it.env);
    assert.equal(first.code, 0, first.stderr);
    assert.match(first.stderr, /20 events delivered/);
    assert.equal(printed(first).length, 20);
    await publish(it, 3);
    const second = await runCommand(["run", "--once"], it.env);
    assert.equal(printed(second).length, 3, second.stderr);
    const [log] = await logs(it.env);
    assert.deepEqual([log?.pipeline, log?.kind, log?.lag, log?.parked], ["shop.log->stdout", "managed", 0, 0]);
  });
});
