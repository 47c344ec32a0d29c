import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { type ReplayStage, replayStage } from "../e2e/replay-stage.ts";
import { startService } from "../e2e/service-process.ts";
import { serverOfFile } from "../e2e/service-stage.ts";
import { type HttpReceiver, startHttpReceiver } from "../servers/http-receiver.ts";
import { until } from "../servers/until.ts";

const folder = new URL("../../examples/operations/", import.meta.url);
const server = serverOfFile();
let receiver: HttpReceiver;

before(async () => {
  receiver = await startHttpReceiver();
});
after(() => receiver[Symbol.asyncDispose]());

async function buried(): Promise<ReplayStage> {
  const stage = await replayStage(server(), `${receiver.origin}/shop`);
  await stage.command("run", "--once");
  await stage.bury({ count: 3, followers: 2, reason: "'Answered 422: no such customer'" });
  return stage;
}

test("H4 A21 F3 from code: status, search, pause, limit, a replay with its dry run, errors and the audit", async () => {
  await using stage = await buried();
  await using service = await stage.run();
  const program = fileURLToPath(new URL("operate.ts", folder));
  await using operator = startService([program], { RELAY_URL: service.origin }, process.execPath);
  const { code, stderr, stdout } = await operator.ended;
  assert.deepEqual({ code, stderr }, { code: 0, stderr: "" });
  assert.equal(stdout, readFileSync(new URL("expected-output.txt", folder), "utf8"));
  await until("the replayed events and those behind them have arrived", () => receiver.arrivals().length === 9);
});
