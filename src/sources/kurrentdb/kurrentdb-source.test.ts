// KurrentDB is a fake here, written after its protocol and source: no real server can be had where these tests run.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import { type KurrentDb, startKurrentDb } from "../../../test/servers/kurrentdb.ts";
import { LogFollower } from "../../../test/servers/log-follower.ts";
import { until } from "../../../test/servers/until.ts";
import { isRelayError } from "../../core/errors.ts";
import type { EventLog, NewLoggedEvent } from "../../ports/event-log.ts";
import { kurrentdbLog } from "./kurrentdb-source.ts";

const WAYS = ["all", "category"] as const;

let server: KurrentDb;
const logs = {} as Record<(typeof WAYS)[number], EventLog>;
let contexts = 0;

before(async () => {
  server = await startKurrentDb();
  for (const way of WAYS) logs[way] = kurrentdbLog({ url: server.url, way });
});

after(async () => {
  await Promise.all(WAYS.map((way) => logs[way].close()));
  await server[Symbol.asyncDispose]();
});

/** Every test has a context of its own. */
function newPrefix(): string {
  contexts += 1;
  return `shop${contexts}.order.request-`;
}

function event(type: string, metadata: Record<string, unknown> = { intent: "outbox" }): NewLoggedEvent {
  return { id: randomUUID(), type, data: { id: type }, metadata };
}

const typesOf = (follower: LogFollower) => follower.events.map((item) => item.event.type);

for (const way of WAYS) {
  test(`E1 ${way}: the requests of one context are shown in their order, then live, on a fake server`, async () => {
    const [prefix, log] = [newPrefix(), logs[way]];
    const neighbour = prefix.replace("request-", "requested-");
    await log.append(`${prefix}acme-1`, null, [event("A"), event("B")]);
    await log.append(`${neighbour}acme-1`, null, [event("foreign")]);
    await log.append(`${prefix}acme-2`, null, [event("C")]);
    const follower = new LogFollower(log, prefix, "beginning");
    await follower.caughtUp();
    assert.deepEqual(typesOf(follower), ["A", "B", "C"]);
    await log.append(`${prefix}acme-1`, 1n, [event("D")]);
    await follower.shown(4);
    assert.equal(follower.events[3]?.event.stream, `${prefix}acme-1`);
    assert.equal(follower.events[3]?.event.revision, 2n);
    assert.equal(follower.items.at(-1)?.kind, "caught up", "live: nothing more at present");
    await follower.stop();
    assert.equal(await follower.ended, null);
  });

  test(`E5 ${way}: a reader that resumes after a position sees what follows, and nothing twice, on a fake server`, async () => {
    const [prefix, log] = [newPrefix(), logs[way]];
    await log.append(
      `${prefix}acme-1`,
      null,
      Array.from({ length: 9 }, (_, index) => event(`E${index}`)),
    );
    const whole = new LogFollower(log, prefix, "beginning", 4);
    await whole.caughtUp();
    await whole.stop();
    assert.ok(
      whole.pages.every((count) => count <= 4),
      "no page holds more than asked for",
    );
    for (const [index, { position }] of whole.events.entries()) {
      const rest = new LogFollower(log, prefix, { after: position });
      await rest.caughtUp();
      assert.deepEqual(typesOf(rest), typesOf(whole).slice(index + 1));
      await rest.stop();
    }
  });

  test(`E5 ${way}: who begins now gets a place at once, and misses nothing from there on, on a fake server`, async () => {
    const [prefix, log] = [newPrefix(), logs[way]];
    await log.append(`${prefix}acme-1`, null, [event("before")]);
    const first = new LogFollower(log, prefix, "now");
    await first.caughtUp();
    await first.stop();
    assert.deepEqual(typesOf(first), []);
    await log.append(`${prefix}acme-1`, 0n, [event("between")]);
    const second = new LogFollower(log, prefix, { after: first.position });
    await second.shown(1);
    assert.deepEqual(typesOf(second), ["between"]);
    await second.stop();
  });

  test(`E5 ${way}: who begins now, before anything was written, misses nothing from there on, on a fake server`, async () => {
    const [prefix, log] = [newPrefix(), logs[way]];
    const first = new LogFollower(log, prefix, "now");
    await first.caughtUp();
    await first.stop();
    await log.append(`${prefix}acme-1`, null, [event("the very first")]);
    const second = new LogFollower(log, prefix, { after: first.position });
    await second.shown(1);
    assert.deepEqual(typesOf(second), ["the very first"]);
    await second.stop();
  });

  test(`E5 ${way}: a place that the log does not have is LOG_LOST, on a fake server`, async () => {
    const [prefix, log] = [newPrefix(), logs[way]];
    await log.append(`${prefix}acme-1`, null, [event("A")]);
    const places = way === "all" ? ["999999999/999999999", "7", ""] : ["12", "1/1", "-1"];
    for (const place of places) {
      const error = await new LogFollower(log, prefix, { after: place }).ended;
      assert.ok(isRelayError(error, "LOG_LOST"), `${place}: ${error}`);
    }
  });

  test(`E1 ${way}: metadata and data that are not JSON are shown as such, and the rest continues, on a fake server`, async () => {
    const [prefix, log] = [newPrefix(), logs[way]];
    const stream = `${prefix}acme-1`;
    await server.seed([
      { stream, type: "no JSON", data: "<xml/>", metadata: "tenant=acme" },
      { stream, type: "no object", data: { a: 1 }, metadata: "[1]" },
      { stream, type: "none", data: { a: 1 }, metadata: "" },
      { stream, type: "well", data: { a: 1 }, metadata: { intent: "outbox", tenant: "Zürich" } },
    ]);
    const follower = new LogFollower(log, prefix, "beginning");
    await follower.shown(4);
    await follower.stop();
    const seen = follower.events.map((item) => [item.event.data, item.event.metadata]);
    assert.deepEqual(seen, [
      [undefined, null],
      [{ a: 1 }, null],
      [{ a: 1 }, {}],
      [{ a: 1 }, { intent: "outbox", tenant: "Zürich" }],
    ]);
  });
}

test("E7 metadata come back from the log as they were written, on a fake server", async () => {
  const [prefix, log] = [newPrefix(), logs.all];
  const metadata = {
    correlationId: "c-1",
    causationId: "x",
    source: "api",
    tenant: "acme",
    eventId: "e",
    intent: "outbox",
  };
  const written = event("OrderRequestCreated.v1", metadata);
  await log.append(`${prefix}acme-1`, null, [written]);
  const [read] = await log.read(`${prefix}acme-1`, 0n, 10);
  assert.deepEqual([read?.id, read?.metadata, read?.data], [written.id, metadata, { id: "OrderRequestCreated.v1" }]);
  assert.ok(Math.abs((read?.createdMs ?? 0) - Date.now()) < 60_000);
});

test("E1 a link to a deleted event is named, and what comes behind it is shown, on a fake server", async () => {
  const [prefix, log] = [newPrefix(), logs.category];
  await log.append(`${prefix}acme-1`, null, [event("deleted")]);
  await log.append(`${prefix}acme-2`, null, [event("there")]);
  // As a client deletes a stream: everything before the end of time is truncated.
  await log.append(`$$${prefix}acme-1`, null, [
    { id: randomUUID(), type: "$metadata", data: { $tb: Number.MAX_SAFE_INTEGER }, metadata: {} },
  ]);
  const follower = new LogFollower(log, prefix, "beginning");
  await follower.caughtUp();
  await follower.stop();
  assert.deepEqual(follower.items[0], { kind: "gone", position: "0", link: `0@${prefix}acme-1` });
  assert.deepEqual(typesOf(follower), ["there"]);
  assert.deepEqual(await log.read(`${prefix}acme-1`, 0n, 10), []);
});

test("E6 an append behind another revision is WRONG_REVISION, its repetition changes nothing, on a fake server", async () => {
  const [stream, log] = [`${newPrefix()}acme-1`, logs.all];
  const [first, second] = [event("A"), event("B")];
  assert.equal(await log.append(stream, null, [first, second]), 1n);
  assert.equal(await log.append(stream, null, [first, second]), 1n, "the same again");
  assert.equal(await log.append(stream, 0n, [second]), 1n);
  await assert.rejects(log.append(stream, null, [event("C")]), { code: "WRONG_REVISION" });
  await assert.rejects(log.append(stream, 0n, [event("C")]), { code: "WRONG_REVISION" });
  await assert.rejects(log.append(stream, 5n, [event("C")]), { code: "WRONG_REVISION" });
  await assert.rejects(log.append(stream, null, [first, event("C")]), { code: "WRONG_REVISION" });
  assert.equal(await log.append(stream, 1n, [event("C")]), 2n);
  assert.deepEqual(
    (await log.read(stream, 1n, 1)).map(({ type }) => type),
    ["B"],
  );
  assert.equal((await log.readLast(stream))?.revision, 2n);
});

test("E6 a stream that is not there reads as none, on a fake server", async () => {
  assert.deepEqual(await logs.all.read("nowhere-1", 0n, 10), []);
  assert.equal(await logs.all.readLast("nowhere-1"), null);
  await logs.all.ping();
});

test("E9 one process reads 120 contexts side by side, beside one that is not read, on a fake server", async () => {
  const [log, prefixes] = [logs.all, Array.from({ length: 120 }, newPrefix)];
  const stuck = newPrefix();
  await server.seed(
    Array.from({ length: 3_000 }, () => ({ stream: `${stuck}a-1`, type: "S", data: "x".repeat(2_000), metadata: {} })),
  );
  const nobody = log
    .subscribe({ streamPrefix: stuck, from: "beginning", pageMax: 50, signal: AbortSignal.timeout(60_000) })
    [Symbol.asyncIterator]();
  await nobody.next();
  const followers = prefixes.map((prefix) => new LogFollower(log, prefix, "now"));
  await Promise.all(followers.map((follower) => follower.caughtUp()));
  await server.seed(prefixes.map((prefix) => ({ stream: `${prefix}a-1`, type: "T", data: {}, metadata: {} })));
  await Promise.all(followers.map((follower) => follower.shown(1)));
  assert.ok(followers.every(({ events }) => events.length === 1));
  await Promise.all(followers.map((follower) => follower.stop()));
  await nobody.return?.();
  await until("the server has no subscription left", async () => (await server.figures()).subscriptions === 0);
});

test("E1 a slow reader is sent no more than fits, on a fake server", async () => {
  const [prefix, log] = [newPrefix(), logs.all];
  const count = 4_000;
  await server.seed(
    Array.from({ length: count }, () => ({ stream: `${prefix}a-1`, type: "S", data: "x".repeat(5_000), metadata: {} })),
  );
  const { sent } = await server.figures();
  const pages = log.subscribe({
    streamPrefix: prefix,
    from: "beginning",
    pageMax: 100,
    signal: AbortSignal.timeout(60_000),
  });
  let seen = 0;
  for await (const page of pages) {
    seen += page.filter(({ kind }) => kind === "event").length;
    const ahead = (await server.figures()).sent - sent - seen;
    assert.ok(ahead < 1_500, `${ahead} events are on the way`);
    if (seen === count) break;
  }
  assert.equal(seen, count);
});
