import assert from "node:assert/strict";
import { test } from "node:test";
import { Redis } from "ioredis";
import { startRedis } from "./redis.ts";

test("a private Redis keeps what it acknowledged through a kill, and leaves nothing behind", async () => {
  await using server = await startRedis();
  const redis = new Redis(server.url);
  redis.on("error", () => {});
  await redis.set("a", "1");
  await server.kill();
  await server.restart();
  assert.equal(await redis.get("a"), "1");
  await server.pause();
  const late = redis.get("a");
  server.resume();
  assert.equal(await late, "1");
  redis.disconnect();
});
