// KurrentDB is a fake here, written after its protocol and source: no real server can be had where these tests run.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import { freePort } from "../../../test/servers/free-port.ts";
import { type KurrentDb, startKurrentDb } from "../../../test/servers/kurrentdb.ts";
import { LogFollower } from "../../../test/servers/log-follower.ts";
import { assertWithin } from "../../../test/servers/pace.ts";
import { until } from "../../../test/servers/until.ts";
import { isRelayError, stackOf } from "../../core/errors.ts";
import type { EventLog, NewLoggedEvent } from "../../ports/event-log.ts";
import { kurrentdbLog } from "./kurrentdb-source.ts";

let server: KurrentDb;
let log: EventLog;

before(async () => {
  server = await startKurrentDb();
  log = kurrentdbLog({
    url: `${server.url}&keepAliveInterval=1000&keepAliveTimeout=1000`,
    requestTimeoutMs: 4_000,
  });
});

after(async () => {
  await log.close();
  await server[Symbol.asyncDispose]();
});

function event(type: string): NewLoggedEvent {
  return { id: randomUUID(), type, data: {}, metadata: {} };
}

const typesOf = (follower: LogFollower) => follower.events.map((item) => item.event.type);

/** The client needs a moment to find a server again that was away. */
async function answers(): Promise<void> {
  await until("the server answers", () =>
    log.ping().then(
      () => true,
      () => false,
    ),
  );
}

for (const how of ["error", "end"] as const) {
  test(`E1 a subscription that the server drops (${how}) is LOG_UNREACHABLE, and resumes from its position, on a fake server`, async () => {
    const prefix = `drop${how}.order.request-`;
    await log.append(`${prefix}a-1`, null, [event("A")]);
    const [follower, other] = [new LogFollower(log, prefix, "beginning"), new LogFollower(log, prefix, "beginning")];
    await Promise.all([follower.caughtUp(), other.caughtUp()]);
    await server.dropSubscriptions(how, 1);
    const error = await Promise.race([follower.ended, other.ended]);
    assert.ok(isRelayError(error, "LOG_UNREACHABLE"), String(error));
    await server.dropSubscriptions(how);
    await Promise.all([follower.ended, other.ended]);
    await log.append(`${prefix}a-1`, 0n, [event("B")]);
    const next = new LogFollower(log, prefix, { after: follower.position });
    await next.shown(1);
    assert.deepEqual(typesOf(next), ["B"]);
    await next.stop();
  });
}

test("E5 a server that is killed and comes back has all that it acknowledged, and nothing is shown twice, on a fake server", async () => {
  const prefix = "kill.order.request-";
  const written: string[] = [];
  const shown: string[] = [];
  let last: bigint | null = null;
  let place: string | null = null;
  for (let round = 0; round < 3; round += 1) {
    const follower: LogFollower = new LogFollower(log, prefix, place === null ? "beginning" : { after: place });
    for (let index = 0; index < 5; index += 1) {
      const type = `E${round}.${index}`;
      last = await log.append(`${prefix}a-1`, last, [event(type)]);
      written.push(type);
    }
    await follower.shown(3);
    await server.kill();
    assert.ok(isRelayError(await follower.ended, "LOG_UNREACHABLE"));
    const refused = event("refused");
    await assert.rejects(log.append(`${prefix}a-1`, last, [refused]), { code: "LOG_UNREACHABLE" });
    await assert.rejects(log.ping(), { code: "LOG_UNREACHABLE" });
    shown.push(...typesOf(follower));
    place = follower.position;
    await server.restart();
    await answers();
  }
  const rest = new LogFollower(log, prefix, { after: place ?? "" });
  await rest.caughtUp();
  await rest.stop();
  assert.deepEqual([...shown, ...typesOf(rest)], written);
});

test("E6 a hundred appends at once when the server dies all come to an end, and repeated they take effect once, on a fake server", async () => {
  const streams = Array.from({ length: 100 }, (_, index) => `crowd.order.request-${index}`);
  const events = streams.map(() => ({ ...event("A"), data: { text: "x".repeat(20_000) } }));
  const appendAll = () =>
    Promise.allSettled(streams.map((stream, index) => log.append(stream, null, [events[index] ?? event("none")])));
  const first = appendAll();
  await server.kill();
  for (const result of await first) {
    assert.ok(result.status === "fulfilled" || isRelayError(result.reason, "LOG_UNREACHABLE"));
  }
  await server.restart();
  await answers();
  assert.ok((await appendAll()).every((result) => result.status === "fulfilled" && result.value === 0n));
  for (const [index, stream] of streams.entries()) {
    const ids = (await log.read(stream, 0n, 10)).map(({ id }) => id);
    assert.deepEqual(ids, [events[index]?.id]);
  }
});

test("E1 a server that froze is LOG_UNREACHABLE for reader, writer and ping, on a fake server", async () => {
  const prefix = "frozen.order.request-";
  await log.append(`${prefix}a-1`, null, [event("A")]);
  const follower = new LogFollower(log, prefix, "beginning");
  await follower.caughtUp();
  await server.pause();
  try {
    const since = performance.now();
    const append = log.append(`${prefix}a-1`, 0n, [event("B")]);
    await Promise.all([
      assert.rejects(append, { code: "LOG_UNREACHABLE" }),
      assert.rejects(log.ping(), { code: "LOG_UNREACHABLE" }),
      follower.ended.then((error) => assert.ok(isRelayError(error, "LOG_UNREACHABLE"), String(error))),
    ]);
    const early = await new LogFollower(log, prefix, "beginning").ended;
    assert.ok(isRelayError(early, "LOG_UNREACHABLE"), "nor does a new subscription wait for ever");
    await assertWithin(performance.now() - since, 15_000, "noticing it");
  } finally {
    server.resume();
  }
  await answers();
  const again = new LogFollower(log, prefix, "beginning");
  await again.caughtUp();
  await again.stop();
  assert.equal(typesOf(again)[0], "A");
});

test("E1 who begins while the server is away finds it once it is there, on a fake server", async () => {
  await server.kill();
  const early = kurrentdbLog({ url: server.url });
  for (let round = 0; round < 2; round += 1) await assert.rejects(early.ping(), { code: "LOG_UNREACHABLE" });
  await server.restart();
  await until("the server is found", () =>
    early.ping().then(
      () => true,
      () => false,
    ),
  );
  assert.equal(await early.append("early.order.request-1", null, [event("A")]), 0n);
  await early.close();
  await answers();
});

test("E1 a wrong address is LOG_UNREACHABLE and names the host, never the password", async () => {
  const lost = kurrentdbLog({ url: `kurrentdb://admin:hunter2%21@127.0.0.1:${await freePort()}?tls=false` });
  const attempts = [
    () => lost.append("a-1", null, [event("A")]),
    () => lost.ping(),
    () => lost.readLast("a-1"),
    () => new LogFollower(lost, "a-", "beginning").ended.then((error) => Promise.reject(error)),
  ];
  for (const attempt of attempts) {
    await assert.rejects(attempt, (error) => {
      assert.ok(isRelayError(error, "LOG_UNREACHABLE"), String(error));
      assert.match(error.message, /kurrentdb:\/\/127\.0\.0\.1:\d+/);
      assert.doesNotMatch(stackOf(error) ?? "", /hunter2/);
      return true;
    });
  }
  await lost.close();
});

test("E1 a wrong password is refused and not shown, the right one is let in over TLS, on a fake server", async () => {
  await using guarded = await startKurrentDb({ password: "correct:horse" });
  const right = kurrentdbLog({ url: guarded.url });
  assert.equal(await right.append("a.b.request-1", null, [event("A")]), 0n);
  const follower = new LogFollower(right, "a.b.request-", "beginning");
  await follower.shown(1);
  await follower.stop();
  await right.ping();
  await right.close();
  const wrong = kurrentdbLog({ url: guarded.url, credentials: { username: "admin", password: "battery%staple" } });
  const attempts = [
    () => wrong.append("a.b.request-1", 0n, [event("B")]),
    () => wrong.ping(),
    () => new LogFollower(wrong, "a.b.request-", "beginning").ended.then((error) => Promise.reject(error)),
  ];
  for (const attempt of attempts) {
    await assert.rejects(attempt, (error) => {
      assert.ok(isRelayError(error, "LOG_UNREACHABLE"), String(error));
      assert.match(error.message, /denied|credentials/i);
      assert.doesNotMatch(stackOf(error) ?? "", /staple|horse/);
      return true;
    });
  }
  await wrong.close();
});
