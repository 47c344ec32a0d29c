import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import type { QueueSource, RunRequest } from "../ports/queue-store.ts";
import { memorySource } from "../sources/memory/memory-source.ts";
import { watchedSource } from "./watched-store.ts";

const SPEC = { name: "p", types: null, lanes: 1, attemptsMax: 3, payloadBytesMax: 1_000, headersMax: 10 };
const UNHEARD = { polled: () => {}, answered: () => {} };

test("A18 every answer is a sign of life, every look for events a poll, and nothing else changes", async () => {
  const inner = memorySource();
  const told = { polls: 0, answers: 0 };
  const source = watchedSource(inner, (pipeline) => {
    assert.equal(pipeline, "p");
    return {
      polled: (durationMs) => {
        assert.ok(durationMs >= 0);
        told.polls += 1;
      },
      answered: () => {
        told.answers += 1;
      },
    };
  });
  const store = source.pipeline(SPEC);
  assert.equal(source.name, inner.name);
  assert.equal(store.durableClaims, null);
  assert.deepEqual(await store.prepare(), { lanes: 1 });
  inner.database.insert([{ id: "e1", type: "t", key: "k" }]);
  const owner = randomUUID();
  await source.membership.join({ id: owner, name: "it", leaseMs: 60_000, pipelines: ["p"] });
  assert.deepEqual((await store.survey()).instances, [owner]);
  const [takeover] = await store.takeOver(owner, [0]);
  const { grant } = takeover!;
  assert.deepEqual(told, { polls: 0, answers: 3 });
  assert.equal(await store.probe([grant]), true);
  assert.deepEqual(told, { polls: 1, answers: 4 });
  const run = await store.begin({ grants: [grant], exceptKeys: [], exceptTypes: [] });
  assert.deepEqual(
    (await run.next(10, 1_000)).map(({ id }) => id),
    ["e1"],
  );
  assert.deepEqual(await run.next(10, 1_000), []);
  await run.end();
  assert.deepEqual(told, { polls: 2, answers: 7 }, "a run is one poll, however many pages it has");
  assert.equal((await store.backlog()).pending, 1);
  assert.deepEqual(await store.unrouted(), []);
  assert.deepEqual(await store.reviewHolds(grant), []);
  assert.deepEqual(await store.claimHeads(grant, []), { events: [], gone: [] });
  assert.equal(await store.prune(0, 10), 0);
  await store.release(grant);
  await source.close();
});

test("D9 what a store can be asked and told passes through: news, and what is in flight", async () => {
  const plain = memorySource();
  assert.equal(watchedSource(plain, () => UNHEARD).pipeline(SPEC).watch, undefined);
  const asked: unknown[] = [];
  const inner: QueueSource = {
    ...plain,
    pipeline: (spec) =>
      Object.assign(plain.pipeline(spec), {
        watch: (onNews: () => void) => {
          onNews();
          return () => asked.push("stop");
        },
        begin: async (request: RunRequest) => {
          asked.push(request.isInFlight?.("e1"));
          return { lanes: [], next: async () => [], end: async () => {} };
        },
      }),
  };
  const store = watchedSource(inner, () => UNHEARD).pipeline(SPEC);
  store.watch!(() => asked.push("news"))();
  await store.begin({ grants: [], exceptKeys: [], exceptTypes: [], isInFlight: (id) => id === "e1" });
  assert.deepEqual(asked, ["news", "stop", true]);
});

test("A18 what fails is no sign of life", async () => {
  const answered = () => assert.fail("told of an answer");
  const source = watchedSource(memorySource(), () => ({ polled: answered, answered }));
  await assert.rejects(source.pipeline(SPEC).probe([]), /is not prepared/);
});
