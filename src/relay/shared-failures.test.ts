import assert from "node:assert/strict";
import { test } from "node:test";
import { until } from "../../test/servers/until.ts";
import { retry } from "../core/outcome.ts";
import { scheduledRetry } from "../core/retry-policy.ts";
import type { Publisher } from "../ports/publisher.ts";
import { memorySource } from "../sources/memory/memory-source.ts";
import { ids, QUICK, stage } from "./failure-stage.test.ts";
import { createRelay } from "./relay.ts";

for (const scope of ["destination", "topic"] as const) {
  test(`H1 one event that is answered as if the ${scope} took nothing blocks no other event, and is dead in the end`, async () => {
    const { source, publisher, relay, insert, of } = stage({ retry: scheduledRetry([20, 20]) });
    await using _ = relay;
    publisher.respond(({ event }) => (event.id === "bad" ? retry("403", { scope }) : { kind: "delivered" }));
    insert("first", "bad", "behind");
    await relay.start();
    await until("it was a probe and failed", () => of("IntentRelayFailed").length >= 2);
    for (let i = 0; i < 100; i += 1) insert(`k${i}`, `e${i}`);
    await publisher.arrived(100);
    let more = 100;
    await until("it is dead", () => {
      insert(null, `e${more++}`);
      return source.deadLetters().length === 1;
    });
    const [letter] = source.deadLetters();
    assert.deepEqual([letter?.event.id, letter?.attempts], ["bad", 3]);
    assert.deepEqual(ids(publisher.deliveredOf("first")), []);
  });

  test(`H1 the only key that a ${scope} accepts is delivered, and the events of the others are not dead`, async () => {
    const { source, publisher, relay, insert } = stage({ retry: scheduledRetry([]) });
    await using _ = relay;
    publisher.respond(({ key }) => (key === "only" ? { kind: "delivered" } : retry("403", { scope })));
    for (let i = 0; i < 60; i += 1) insert(`k${i}`, `e${i}`);
    insert("only", "o1", "o2", "o3");
    await relay.start();
    await publisher.arrived(3);
    insert("only", "o4");
    await publisher.arrived(4);
    assert.deepEqual(ids(publisher.deliveredOf("only")), ["o1", "o2", "o3", "o4"]);
    assert.equal(source.deadLetters().length, 0);
  });
}

test("H1 a destination that says when to come again is asked then, however short or long its own pauses would be", async () => {
  const afterMs = 200;
  const pauses = [
    { circuitInitialMs: 20, circuitMaxMs: 50 },
    { circuitInitialMs: 100, circuitMaxMs: 60_000 },
  ];
  for (const pause of pauses) {
    const { publisher, relay, insert } = stage({}, { timing: { ...QUICK, ...pause } });
    await using _ = relay;
    const askedMs: number[] = [];
    publisher.respond(() => {
      askedMs.push(performance.now());
      return askedMs.length < 8 ? retry("503", { scope: "destination", afterMs }) : { kind: "delivered" };
    });
    insert("a", "e1");
    await relay.start();
    await publisher.arrived(1);
    const waitsMs = askedMs.slice(1).map((atMs, index) => atMs - askedMs[index]!);
    assert.ok(Math.min(...waitsMs) >= afterMs - 1, `asked after ${Math.min(...waitsMs)} ms`);
    assert.ok(Math.max(...waitsMs) < 10 * afterMs, `asked after ${Math.max(...waitsMs)} ms`);
  }
});

test("H1 a destination that answers for its topic is back: health no longer reports its earlier failure", async () => {
  const { publisher, relay, insert } = stage({ retry: scheduledRetry([]) });
  await using _ = relay;
  const reported: string[] = [];
  relay.on("CircuitOpened", ({ reason, topic }) =>
    reported.push(`${topic === null ? "all" : "topic"} closed: ${reason}`),
  );
  relay.on("CircuitClosed", ({ topic }) => reported.push(`${topic === null ? "all" : "topic"} open`));
  let answer = retry("no exchange, said of event-1", { scope: "destination" });
  publisher.respond(() => answer);
  insert("a", "event-1", "event-2");
  await relay.start();
  await until("nothing is taken", () => reported.length > 0);
  answer = retry("no queue is bound", { scope: "topic" });
  await until("the destination is back, without its topic", () => reported.length >= 3);
  assert.deepEqual(reported.toSorted(), [
    "all closed: no exchange, said of <id>",
    "all open",
    "topic closed: no queue is bound",
  ]);
});

test("H1 one event that makes its whole batch fail is sent alone, and is dead in the end", async () => {
  const source = memorySource();
  const delivered: string[] = [];
  const publisher: Publisher = {
    name: "out",
    capabilities: { keyOrderInBatch: true, deduplicates: false },
    publish: async (batch, report) => {
      const isClosed = batch.some(({ event }) => event.id === "bad");
      for (const [index, { event }] of batch.entries()) {
        if (!isClosed) delivered.push(event.id);
        report(index, isClosed ? retry("channel closed", { scope: "destination" }) : { kind: "delivered" });
      }
    },
    close: async () => {},
  };
  const routes = [{ destination: "out" as const, retry: scheduledRetry([20]) }];
  await using relay = createRelay({ sources: [source], destinations: { out: publisher }, routes, timing: QUICK });
  for (let i = 0; i < 100; i += 1) {
    source.insert({ id: i === 50 ? "bad" : `e${i}`, type: "t", key: `k${i}`, payload: "" });
  }
  await relay.start();
  await until("all others are there", () => new Set(delivered).size >= 99);
  let more = 100;
  await until("it is dead", () => {
    source.insert({ id: `e${more++}`, type: "t", key: null, payload: "" });
    return source.deadLetters().length === 1;
  });
  assert.equal(source.deadLetters()[0]?.event.id, "bad");
});

test("H1 where nothing was sent, or part of the destination is down, no attempt is ever counted", async () => {
  const { source, publisher, relay, insert, of } = stage({ retry: scheduledRetry([]) });
  await using _ = relay;
  const outside = retry("no leader", { scope: "topic", isOutside: true });
  publisher.respond(({ key }) => (key === "away" ? outside : { kind: "delivered" }));
  insert("away", "a1");
  await relay.start();
  let more = 0;
  await until("it failed often while others were delivered", () => {
    insert(null, `e${more++}`);
    return of("IntentRelayFailed").length >= 8;
  });
  publisher.respond(null);
  await until("it is there", () => publisher.deliveredOf("away").length === 1);
  assert.equal(source.deadLetters().length, 0);
});

test("H1 more failing topics than there are circuits block no other topic", async () => {
  const { source, publisher, relay, of } = stage({ topic: (event) => event.type });
  await using _ = relay;
  publisher.respond(({ topic }) => (topic === "good" ? { kind: "delivered" } : retry("404", { scope: "topic" })));
  for (let i = 0; i < 1_100; i += 1) source.insert({ id: `b${i}`, type: `bad${i}`, key: null, payload: "" });
  await relay.start();
  await until("they all failed", () => of("IntentRelayFailed").length >= 1_100);
  for (let i = 0; i < 50; i += 1) source.insert({ id: `g${i}`, type: "good", key: `k${i}`, payload: "" });
  await publisher.arrived(50);
  assert.deepEqual(
    of("CircuitOpened").filter((event) => "topic" in event && event.topic === null),
    [],
  );
  assert.equal(source.deadLetters().length, 0);
});

test("H1 a publisher that does not end when it is aborted does not block its lane for ever", async () => {
  const source = memorySource();
  const stuck = Promise.withResolvers<void>();
  const sent: string[] = [];
  const publisher: Publisher = {
    name: "out",
    capabilities: { keyOrderInBatch: true, deduplicates: false },
    publish: async (batch, report) => {
      sent.push(...batch.map(({ event }) => event.id));
      if (sent.length === 1) await stuck.promise;
      else for (const index of batch.keys()) report(index, { kind: "delivered" });
    },
    close: async () => {},
  };
  const timing = { ...QUICK, leaseMs: 500, leaseMarginMs: 100 };
  const options = {
    sources: [source],
    destinations: { out: publisher },
    routes: [{ destination: "out" as const }],
    timing,
  };
  await using relay = createRelay({ ...options, lanes: 1, limits: { publishesPerLane: 1 } });
  const lanes: number[] = [];
  relay.on("PublishStuck", ({ lane }) => lanes.push(lane));
  source.insert({ id: "e1", type: "t", key: "a", payload: "" });
  await relay.start();
  await until("it is delivered after the lane was taken over again", () => source.delivered().length === 1);
  assert.deepEqual([lanes, sent], [[0], ["e1", "e1"]]);
  stuck.resolve();
});
