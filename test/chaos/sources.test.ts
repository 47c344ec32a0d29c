import assert from "node:assert/strict";
import { test } from "node:test";
import { describeKills, isProved, proveKills } from "./sources/kill-proof.ts";

const seed = Number(process.env.CHAOS_SEED ?? Date.now() % 1_000_000);

test("H1 B4 B5 kill -9 over an Open Outbox table loses nothing, keeps the order of every key and buries nothing", async (t) => {
  t.diagnostic(`CHAOS_SEED=${seed}`);
  const log = (line: string) => t.diagnostic(line);
  const report = await proveKills({ source: "openoutbox", kills: 2, relays: 1, seed, log });
  assert.ok(isProved(report), describeKills(report));
});
