import assert from "node:assert/strict";
import { test } from "node:test";
import { until } from "../../test/servers/until.ts";
import { systemClock } from "../core/clock.ts";
import type { IntentHandler } from "../lambda/intent-handler.ts";
import { LocalRunner } from "./local-runner.ts";
import { recoverRelays } from "./recover-relays.ts";
import { ARN, FakeCheckpoints, FakeStreams, fakeHandler, recordedEvents } from "./stream-fixture.test.ts";

const TIMING = {
  pollMs: 2,
  windowMs: 2,
  pauseMs: { firstMs: 2, lastMs: 10 },
  refreshMs: 10,
  leaseMs: 300,
  sweepMs: 20,
};
const SWEEP_ROW = { relay: "outbox/A", shard: "(sweep)", stream: ARN, position: "searched", isDone: false, lost: null };

function stage(handlers: readonly IntentHandler[], { self = "one", isSearched = true } = {}) {
  const streams = new FakeStreams();
  const checkpoints = new FakeCheckpoints();
  if (isSearched) {
    for (const { type } of handlers) {
      const row = { ...SWEEP_ROW, relay: `outbox/${type}`, owner: null, fence: 1, beat: 0 };
      checkpoints.rows.set(`outbox/${type} (sweep)`, row);
    }
  }
  const { events, reported } = recordedEvents(systemClock);
  const searched: string[] = [];
  const open = (owner: string, batchSize = 3) =>
    new LocalRunner({
      table: "outbox",
      stream: () => streams.open(),
      checkpoints: checkpoints.of(owner),
      self: owner,
      handlers,
      knownTypes: handlers.map(({ type }) => type),
      search: async ({ type }) => void searched.push(type),
      isDue: async () => false,
      clock: systemClock,
      events,
      batchSize,
      timing: TIMING,
    });
  const rowOf = (shard: string, type = "A") => checkpoints.rows.get(`outbox/${type} ${shard}`);
  return { streams, checkpoints, reported, searched, open, runner: open(self), rowOf };
}

test("D2: a parent is read to its end before its children, also when the list has pages (fake stream: DynamoDB Local has one shard)", async () => {
  const handler = fakeHandler("A");
  const { open, rowOf, runner, streams } = stage([handler]);
  streams.pageSize = 1;
  streams.shard("child-1", [4, 5], "parent");
  streams.shard("child-2", [6], "parent");
  const parent = streams.shard("parent", [1, 2], "long-gone");
  runner.start();
  await until("the parent is read", () => rowOf("parent")?.position === "2");
  assert.deepEqual([rowOf("child-1"), rowOf("child-2")], [undefined, undefined]);
  parent.records.push({ sequence: 3, type: "A" });
  parent.isClosed = true;
  await until("the children are read", () => rowOf("child-1")?.position === "5" && rowOf("child-2")?.position === "6");
  await runner.stop();
  assert.equal(rowOf("parent")?.isDone, true);
  assert.deepEqual(handler.seen.flat().slice(0, 3), ["1", "2", "3"]);
  assert.deepEqual(handler.seen.flat().toSorted(), ["1", "2", "3", "4", "5", "6"]);
  streams.shards.splice(streams.shards.indexOf(parent), 1);
  const next = open("two");
  next.start();
  await until("the row of a shard that is done and gone is removed", () => rowOf("parent") === undefined);
  await next.stop();
});

test("D2: an expired iterator is requested again after the last record, and throttling is waited out (fake stream)", async () => {
  const handler = fakeHandler("A");
  const { rowOf, runner, streams, reported } = stage([handler]);
  const shard = streams.shard("s", [1, 2]);
  runner.start();
  await until("two are done", () => rowOf("s")?.position === "2");
  streams.refusals = ["ExpiredIteratorException", "LimitExceededException", "ProvisionedThroughputExceededException"];
  shard.records.push({ sequence: 3, type: "A" });
  await until("the third is done", () => rowOf("s")?.position === "3");
  await runner.stop();
  assert.deepEqual(handler.seen.flat(), ["1", "2", "3"], "nothing twice, nothing passed over");
  assert.ok(streams.asked.includes("s after 2"));
  assert.ok(reported.some((event) => event.name === "SourceBroken" && event.code === "DATABASE_BUSY"));
  assert.ok(reported.some((event) => event.name === "SourceRecovered"));
});

test("D2: what a handler gives back is tried again from the lowest record on, and nothing behind it is passed over", async () => {
  let refusals = 3;
  const handler = fakeHandler("A", (sequences) => {
    const isRefused = sequences.includes("2") && refusals > 0;
    if (isRefused) refusals -= 1;
    return { batchItemFailures: isRefused ? [{ itemIdentifier: "3" }, { itemIdentifier: "2" }] : [] };
  });
  const { rowOf, runner, streams } = stage([handler]);
  streams.shard("s", [1, 2, 3, 4]);
  runner.start();
  await until("all are done", () => rowOf("s")?.position === "4");
  await runner.stop();
  const again = ["2", "3", "4"];
  assert.deepEqual(handler.seen, [["1", "2", "3"], again, again, again]);
});

test("D2: a handler that throws, or answers nonsense, has the whole batch tried again", async () => {
  const answers = [
    () => assert.fail("boom"),
    () => ({ batchItemFailures: [{ itemIdentifier: "77" }] }),
    () => ({ batchItemFailures: "all" as never }),
  ];
  const handler = fakeHandler("A", () => answers.shift()?.() ?? { batchItemFailures: [] });
  const { rowOf, runner, streams, reported } = stage([handler]);
  streams.shard("s", [1, 2]);
  runner.start();
  await until("both are done", () => rowOf("s")?.position === "2");
  await runner.stop();
  assert.deepEqual(handler.seen, [
    ["1", "2"],
    ["1", "2"],
    ["1", "2"],
  ]);
  const reasons = reported.flatMap((event) => (event.name === "ChoreFailed" ? [event.reason] : []));
  assert.match(reasons.join("; "), /threw: boom; .*not in the batch; .*not a list/);
});

test("D6: intents of a type without a relay are reported once per type, and those without a type, too", async () => {
  const handler = fakeHandler("A");
  const { rowOf, runner, streams, reported } = stage([handler]);
  const { records } = streams.shard("s", [1, 2], undefined, "Nobody's");
  records.push({ sequence: 3, type: "A" }, { sequence: 4, type: "" }, { sequence: 5, type: "A" });
  runner.start();
  await until("it is read", () => rowOf("s")?.position === "5");
  await runner.stop();
  const mismatches = reported.flatMap((event) => (event.name === "RelayMismatch" ? [event] : []));
  assert.deepEqual(
    mismatches.map(({ intentType, recordId }) => [intentType, recordId]),
    [
      ["Nobody's", "i1"],
      ["(none)", "i4"],
    ],
  );
  assert.deepEqual(handler.seen.flat(), ["3", "5"]);
});

test("D2: a trimmed position halts only its relay, on every runner, and is reported; a recovery lets it continue (fake stream)", async () => {
  const [handler, other] = [fakeHandler("A"), fakeHandler("B")];
  const { checkpoints, open, rowOf, streams, reported } = stage([handler, other]);
  const shard = streams.shard("s", [1]);
  const first = open("one");
  first.start();
  await until("it is read by both", () => rowOf("s")?.position === "1" && rowOf("s", "B")?.position === "1");
  await first.stop();
  shard.records.splice(0, 1, { sequence: 8, type: "A" }, { sequence: 9, type: "B" });
  shard.trimmedBelow = 8;
  checkpoints.rows.set("outbox/B s", { ...rowOf("s", "B")!, position: "7" });
  const runner = open("two");
  runner.start();
  await until("the position is lost", () => rowOf("s")?.lost);
  await until("the other relay continues", () => rowOf("s", "B")?.position === "9");
  const broken = await until("it is reported repeatedly", () => {
    const found = reported.filter((event) => event.name === "SourceBroken" && event.code === "STREAM_TRIMMED");
    return found.length > 3 && found.at(-1);
  });
  assert.match(String((broken as { reason: string }).reason), /dynamodb recover/);
  assert.deepEqual(handler.seen, [["1"]]);

  const link = { send: async () => ({ Items: [] }), close: async () => {} } as never;
  const { relays } = await recoverRelays({
    table: "outbox",
    link,
    stream: await streams.open(),
    checkpoints: checkpoints.of("recovery"),
    handlers: [handler, other],
    isAll: false,
    context: () => ({ getRemainingTimeInMillis: () => 1_000 }),
    signal: new AbortController().signal,
  });
  assert.deepEqual(relays, ["A"]);
  await until("it continues", () => rowOf("s")?.position === "9");
  await runner.stop();
  assert.deepEqual(handler.seen, [["1"], ["8"]]);
});

test("D2: a position that only its iterator reports as trimmed is read with a new one (fake stream; DynamoDB Local does so)", async () => {
  const handler = fakeHandler("A");
  const { rowOf, runner, streams, reported } = stage([handler]);
  const shard = streams.shard("s", [1]);
  runner.start();
  await until("the first is read", () => rowOf("s")?.position === "1");
  streams.refusals = Array.from({ length: 3 }, () => "TrimmedDataAccessException");
  shard.records.push({ sequence: 2, type: "A" });
  await until("the second is read", () => rowOf("s")?.position === "2");
  await runner.stop();
  assert.deepEqual([handler.seen, rowOf("s")?.lost], [[["1"], ["2"]], null]);
  assert.ok(!reported.some(({ name }) => name === "SourceBroken"));
});

test("D2: a shard that is gone and was not read to its end, or another stream, halts the relay (fake stream)", async () => {
  for (const change of [{ shard: "gone" }, { shard: "(sweep)", stream: "arn:another" }]) {
    const handler = fakeHandler("A");
    const { checkpoints, runner, streams, reported } = stage([handler]);
    streams.shard("s", [1]);
    const row = { ...SWEEP_ROW, position: "5", owner: null, fence: 1, beat: 0, ...change };
    checkpoints.rows.set(`outbox/A ${row.shard}`, row);
    runner.start();
    await until("it is reported", () =>
      reported.some((it) => it.name === "SourceBroken" && it.code === "STREAM_TRIMMED"),
    );
    await runner.stop();
    assert.deepEqual(handler.seen, []);
  }
});

test("D2: of two runners one reads and the other stands by; a killed one's shards are taken over after its lease, and it writes nothing any more", async () => {
  const handler = fakeHandler("A");
  const { checkpoints, open, rowOf, streams } = stage([handler]);
  const shard = streams.shard("s", [1]);
  const dead = checkpoints.of("dead");
  const grant = await dead.take({ ...SWEEP_ROW, shard: "s", position: null, owner: null, fence: 0, beat: 0 });
  assert.ok(grant);
  const [one, two] = [open("one"), open("two")];
  one.start();
  two.start();
  await until("the dead one's shard is taken over", () => rowOf("s")?.position === "1");
  assert.equal(await dead.save(grant, { position: "99" }), false, "its late write changes nothing");
  const owner = rowOf("s")?.owner;
  await (owner === "one" ? one : two).stop();
  shard.records.push({ sequence: 2, type: "A" });
  await until("the other one reads on at once", () => rowOf("s")?.position === "2");
  assert.notEqual(rowOf("s")?.owner, owner);
  await Promise.all([one.stop(), two.stop()]);
  assert.deepEqual(handler.seen, [["1"], ["2"]]);
  assert.equal(rowOf("s")?.owner, null);
});

test("D2: a runner whose lease another one has notices it, and its late progress changes nothing", async () => {
  const handler = fakeHandler("A");
  const { checkpoints, rowOf, runner, streams, reported } = stage([handler]);
  const shard = streams.shard("s", [1]);
  runner.start();
  await until("the first is done", () => rowOf("s")?.position === "1");
  const thief = checkpoints.of("thief");
  await until("another one takes it", () => thief.take(rowOf("s")!));
  shard.records.push({ sequence: 2, type: "A" });
  await until("it is noticed", () => reported.some((it) => it.name === "SourceBroken" && it.code === "LEASE_LOST"));
  assert.deepEqual([rowOf("s")?.owner, rowOf("s")?.position], ["thief", "1"]);
  await runner.stop();
  assert.equal(rowOf("s")?.owner, "thief", "a stop gives back nothing that is another's");
});

test("D2: while the checkpoints cannot be written nothing new is sent beyond the lease, and afterwards nothing is passed over", async () => {
  const handler = fakeHandler("A");
  const { checkpoints, rowOf, runner, streams, reported } = stage([handler]);
  const shard = streams.shard("s", [1]);
  runner.start();
  await until("the first is done", () => rowOf("s")?.position === "1");
  checkpoints.isDown = true;
  const downMs = performance.now();
  await until("its lease is too old to rely on", () => performance.now() - downMs > TIMING.leaseMs);
  shard.records.push({ sequence: 2, type: "A" });
  await until("it is reported", () => reported.some(({ name }) => name === "SourceBroken"));
  assert.deepEqual(handler.seen, [["1"]], "nothing is sent on an old lease");
  checkpoints.isDown = false;
  await until("the second is done", () => rowOf("s")?.position === "2");
  await runner.stop();
  assert.deepEqual(handler.seen, [["1"], ["2"]]);
});

test("D6: the first start of a relay searches the table before it reads the stream, the later ones do not", async () => {
  const handler = fakeHandler("A");
  const { open, rowOf, searched, streams } = stage([handler], { isSearched: false });
  streams.shard("s", [1]);
  for (const owner of ["one", "two"]) {
    const runner = open(owner);
    runner.start();
    await until("it reads", () => rowOf("s")?.owner === owner);
    await runner.stop();
  }
  assert.deepEqual(searched, ["A"]);
  assert.equal(rowOf("(sweep)")?.position, "searched");
});
