import assert from "node:assert/strict";
import { test } from "node:test";
import { fastify } from "fastify";
import { addRoutes } from "./mount.ts";
import { route } from "./route.ts";

test("F6 a server without a guard, as the demo's, outlives an answer that takes long", async (t) => {
  t.mock.timers.enable({ apis: ["setInterval"] });
  const asked = Promise.withResolvers<AbortSignal>();
  const answered = Promise.withResolvers<string>();
  const server = fastify();
  const slow = route({
    method: "GET",
    path: "/slow",
    id: "slow",
    summary: "Answers late",
    access: "open",
    answers: { 200: { description: "Late", schema: null } },
    handle: async ({ signal }) => {
      asked.resolve(signal);
      return { status: 200, body: await answered.promise };
    },
  });
  addRoutes(server, [slow]);
  const answer = server.inject("/slow").then(({ statusCode }) => statusCode);
  const signal = await asked.promise;
  // An exception in a timer would end the whole process.
  t.mock.timers.tick(60_000);
  assert.equal(signal.aborted, false);
  answered.resolve("at last");
  assert.equal(await answer, 200);
});
