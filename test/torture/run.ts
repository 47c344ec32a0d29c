// The long torture of the difference reader: `npm run torture -- --minutes 10`. Each round is another seed.
import { setTimeout as pauseMs } from "node:timers/promises";
import { parseArgs } from "node:util";
import { startPostgres } from "../servers/postgres.ts";
import { startReplicated } from "../servers/postgres-standby.ts";
import { Chance } from "./chance.ts";
import { Scene, type SceneResult } from "./scene.ts";

const { values } = parseArgs({ options: { minutes: { type: "string", default: "5" }, seed: { type: "string" } } });
const minutes = Number(values.minutes);
if (!(minutes > 0)) throw new Error(`--minutes ${values.minutes} is no number of minutes`);
const ROUND_MS = 20_000;
const deadline = performance.now() + minutes * 60_000;
const totals = { rounds: 0, written: 0, restarts: 0, crashes: 0 };

for (let seed = Number(values.seed ?? 1); performance.now() < deadline; seed += 1_000) {
  const { crashes, result } = seed % 3_000 === 1 ? await failoverRound(seed) : await crashRound(seed);
  totals.rounds += 1;
  totals.written += result.written;
  totals.restarts += result.restarts;
  totals.crashes += crashes;
  const left = Math.max(0, Math.round((deadline - performance.now()) / 1_000));
  const { rounds, written, restarts } = totals;
  console.log(
    `seed ${seed}: round ${rounds}, ${written} rows, ${restarts} readers restarted, ${totals.crashes} servers killed, ${left} s left`,
  );
  if (result.wrong.length === 0) continue;
  console.error(`WRONG (seed ${seed}):\n  ${result.wrong.slice(0, 20).join("\n  ")}`);
  process.exitCode = 1;
  break;
}
if (process.exitCode === undefined) console.log("nothing lost, nothing doubled, every key in order");

async function crashRound(seed: number): Promise<{ crashes: number; result: SceneResult }> {
  const chance = new Chance(seed);
  await using server = await startPostgres({ version: chance.one([15, 18] as const) });
  await using scene = new Scene({ url: server.url, seed, isPartitioned: chance.is(0.5) });
  await scene.start();
  let crashes = 0;
  for (const end = performance.now() + ROUND_MS; performance.now() < end; crashes += 1) {
    await pauseMs(chance.from(500, 5_000));
    await scene.requireReading();
    await server.stop("immediate");
    await server.restart();
  }
  return { crashes, result: await scene.finish() };
}

async function failoverRound(seed: number): Promise<{ crashes: number; result: SceneResult }> {
  const chance = new Chance(seed);
  await using replicated = await startReplicated({ version: chance.one([15, 18] as const) });
  await using scene = new Scene({ url: replicated.databaseUrl(), seed, isPartitioned: chance.is(0.5) });
  await scene.start();
  await pauseMs(chance.from(1_000, ROUND_MS / 2));
  // Half of the time the last commits are lost with the primary.
  if (chance.is(0.5)) {
    replicated.pauseReplication();
    await pauseMs(chance.from(100, 1_000));
  }
  await replicated.failover();
  await pauseMs(ROUND_MS / 2);
  await scene.requireReading();
  return { crashes: 1, result: await scene.finish() };
}
