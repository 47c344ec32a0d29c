import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import { CheckpointStream, type EventLog, kurrentdbLog } from "../../src/kurrentdb.ts";
import { type KurrentDb, startKurrentDb } from "../servers/kurrentdb.ts";
import { LogFollower } from "../servers/log-follower.ts";

/**
 * The essentials, on a real KurrentDB when its address is given, with the right to read `$all`; `category` is asked for
 * besides when `KURRENTDB_TEST_CATEGORY` is set, since it needs the projection `$by_category`. Otherwise on the fake,
 * and the titles say so.
 */
const url = process.env.KURRENTDB_TEST_URL;
const place =
  url === undefined
    ? "a fake, NOT on a real server, since KURRENTDB_TEST_URL is not set"
    : "the real server of KURRENTDB_TEST_URL";
const ways =
  url === undefined || process.env.KURRENTDB_TEST_CATEGORY ? (["all", "category"] as const) : (["all"] as const);

let fake: KurrentDb | null = null;
const logs = new Map<string, EventLog>();
const run = randomUUID().slice(0, 8);

before(async () => {
  if (url === undefined) fake = await startKurrentDb();
  for (const way of ways) logs.set(way, kurrentdbLog({ url: url ?? fake?.url ?? "", way }));
});

after(async () => {
  await Promise.all([...logs.values()].map((log) => log.close()));
  await fake?.[Symbol.asyncDispose]();
});

function logOf(way: string): EventLog {
  const log = logs.get(way);
  if (log === undefined) throw new Error(way);
  return log;
}

const event = (type: string) => ({
  id: randomUUID(),
  type,
  data: { id: type },
  metadata: { intent: "outbox", tenant: "acme" },
});

for (const way of ways) {
  test(`E1 E5 E7 ${way}: append, subscribe, go on from a place, on ${place}`, async () => {
    const [log, prefix] = [logOf(way), `check${run}.${way}.request-`];
    const [first, second, third] = [event("A"), event("B"), event("C")];
    assert.equal(await log.append(`${prefix}acme-1`, null, [first, second]), 1n);
    assert.equal(await log.append(`${prefix}acme-1`, null, [first, second]), 1n, "the same again changes nothing");
    const whole = new LogFollower(log, prefix, "beginning");
    await whole.shown(2);
    await whole.caughtUp();
    assert.equal(await log.append(`${prefix}acme-1`, 1n, [third]), 2n);
    await whole.shown(3);
    await whole.stop();
    assert.deepEqual(
      whole.events.map((item) => [item.event.id, item.event.type, item.event.revision, item.event.metadata]),
      [first, second, third].map(({ id, metadata, type }, index) => [id, type, BigInt(index), metadata]),
    );
    const rest = new LogFollower(log, prefix, { after: whole.events[1]?.position ?? "" });
    await rest.shown(1);
    await rest.stop();
    assert.deepEqual(
      rest.events.map((item) => item.event.id),
      [third.id],
    );
    const beyond = way === "all" ? "9000000000000000/9000000000000000" : "900000000";
    const lost = await new LogFollower(log, prefix, { after: beyond }).ended;
    assert.equal((lost as { code?: string } | null)?.code, "LOG_LOST");
  });
}

test(`E5 E6 revisions, missing streams and checkpoints, on ${place}`, async () => {
  const [log, stream] = [logOf("all"), `check${run}.revisions.request-acme-1`];
  assert.deepEqual(await log.read(stream, 0n, 10), []);
  assert.equal(await log.readLast(stream), null);
  await log.append(stream, null, [event("A"), event("B")]);
  await assert.rejects(log.append(stream, null, [event("C")]), { code: "WRONG_REVISION" });
  await assert.rejects(log.append(stream, 0n, [event("C")]), { code: "WRONG_REVISION" });
  await assert.rejects(log.append(stream, 7n, [event("C")]), { code: "WRONG_REVISION" });
  assert.equal((await log.readLast(stream))?.revision, 1n);
  const name = `check${run}.revisions.relay.checkpoint`;
  const [former, successor] = [new CheckpointStream(log, name), new CheckpointStream(log, name)];
  assert.equal(await former.read(), null);
  await former.write("1/1");
  await former.write("2/2");
  assert.equal(await successor.read(), "2/2");
  assert.equal((await log.read(name, 0n, 10)).length, 1, "the stream keeps the last one only");
  await successor.write("3/3");
  await assert.rejects(former.write("3/3"), { code: "FENCED" });
});
