import assert from "node:assert/strict";
import { test } from "node:test";
import { assertWithin } from "../../../test/servers/pace.ts";
import { type Receiver, startReceiver } from "../../../test/servers/receiver.ts";
import { until } from "../../../test/servers/until.ts";
import { type Clock, systemClock } from "../../core/clock.ts";
import { PushTally } from "../push-tally.ts";
import { LokiPush } from "./loki-push.ts";

/** Sleeps take no real time but advance the clock; only the bound of a stop is real. */
class HurriedClock implements Clock {
  nowMs = 1_700_000_000_000;
  wallMs = () => this.nowMs;
  monotonicMs = () => this.nowMs;
  sleep = (ms: number, signal?: AbortSignal) =>
    new Promise<void>((resolve) => {
      this.nowMs += ms;
      if (signal?.aborted) return resolve();
      setImmediate(resolve);
    });
}

function pusher(receiver: Receiver, clock: Clock = new HurriedClock(), basicAuth: string | null = null) {
  const tally = new PushTally();
  const warnings: string[] = [];
  const warn = (reason: string) => void warnings.push(reason);
  const loki = new LokiPush({ url: receiver.url, basicAuth, service: "shop", tally, clock, warn });
  return { loki, tally, warnings };
}

function linesIn({ requests }: Receiver): string[] {
  return requests.flatMap(({ body }) => {
    const { streams } = JSON.parse(body.toString()) as { streams: { values: [string, string][] }[] };
    return streams.flatMap(({ values }) => values.map(([, line]) => line));
  });
}

const figuresOf = (tally: PushTally) => tally.figures()[0];

test("A21 lines arrive at Loki's address in order, by level, packed, with the login", async () => {
  await using receiver = await startReceiver();
  const { loki, tally } = pusher(receiver, undefined, "me:pass");
  loki.add("info", '{"n":1}\n');
  loki.add("error", '{"n":2}\n');
  loki.add("info", '{"n":3}\n');
  await until("they are there", () => linesIn(receiver).length === 3);
  const [{ path, headers, body } = assert.fail("nothing came")] = receiver.requests;
  assert.equal(path, "/loki/api/v1/push");
  assert.equal(headers["content-encoding"], "gzip");
  assert.equal(headers.authorization, `Basic ${Buffer.from("me:pass").toString("base64")}`);
  const { streams } = JSON.parse(body.toString()) as { streams: { stream: object; values: [string, string][] }[] };
  assert.deepEqual(
    streams.map(({ stream, values }) => [stream, values.map(([, line]) => line)]),
    [
      [{ job: "outbox-relay", service: "shop", level: "info" }, ['{"n":1}', '{"n":3}']],
      [{ job: "outbox-relay", service: "shop", level: "error" }, ['{"n":2}']],
    ],
  );
  const times = streams[0]!.values.map(([ns]) => BigInt(ns));
  assert.ok(times[0]! < times[1]!, "lines of one millisecond keep their order");
  assert.deepEqual(figuresOf(tally), { receiver: "loki", failures: 0, dropped: 0 });
  await loki.stop();
});

for (const status of [500, 429]) {
  test(`A21 what Loki cannot take now (${status}) is retried until accepted, and warned of once a minute`, async () => {
    await using receiver = await startReceiver();
    receiver.manner = status;
    const clock = new HurriedClock();
    const { loki, tally, warnings } = pusher(receiver, clock);
    loki.add("info", "a");
    await until("it was tried", () => receiver.requests.length >= 8);
    receiver.manner = 200;
    const before = receiver.requests.length;
    await until("it was taken", () => receiver.requests.length > before);
    await loki.stop();
    assert.ok((figuresOf(tally)?.failures ?? 0) >= 8);
    assert.equal(figuresOf(tally)?.dropped, 0);
    const minutes = (clock.nowMs - 1_700_000_000_000) / 60_000;
    assert.ok(warnings.length >= 1 && warnings.length <= minutes + 1, `${warnings.length} in ${minutes} minutes`);
    assert.match(warnings[0]!, new RegExp(`it answered ${status}`));
  });
}

test("A21 lines that Loki rejects for good are dropped and counted", async () => {
  await using receiver = await startReceiver();
  receiver.manner = 400;
  const { loki, tally } = pusher(receiver);
  loki.add("info", "a");
  await until("it was refused", () => figuresOf(tally)?.dropped === 1);
  receiver.manner = 200;
  loki.add("info", "b");
  await until("the next is taken", () => linesIn(receiver).includes("b"));
  await loki.stop();
  assert.equal(figuresOf(tally)?.dropped, 1);
});

test("A21 while Loki is away a bounded number of lines is kept, and the oldest are dropped", async () => {
  await using receiver = await startReceiver();
  receiver.manner = 500;
  const { loki, tally } = pusher(receiver);
  for (let n = 0; n < 25_000; n += 1) loki.add("info", `line ${n}`);
  const { dropped = 0 } = figuresOf(tally) ?? {};
  assert.ok(dropped >= 15_000 && dropped < 17_000, String(dropped));
  for (let n = 0; n < 100; n += 1) loki.add("info", "x".repeat(100_000));
  receiver.manner = 200;
  await until("the newest is there", () => linesIn(receiver).at(-1)?.startsWith("xx"));
  assert.ok(!linesIn(receiver).includes("line 0"));
  await loki.stop();
});

test("A21 a stop sends the waiting lines, and does not wait for a receiver that never answers", async () => {
  await using receiver = await startReceiver();
  const heard = pusher(receiver, systemClock);
  heard.loki.add("info", "last words");
  await heard.loki.stop();
  assert.deepEqual(linesIn(receiver), ["last words"]);
  await using deaf = await startReceiver();
  deaf.manner = "silent";
  const lost = pusher(deaf, systemClock);
  lost.loki.add("info", "never heard");
  const startedMs = performance.now();
  await lost.loki.stop();
  const tookMs = performance.now() - startedMs;
  assert.ok(tookMs > 1_000, `${tookMs} ms`);
  await assertWithin(tookMs, 4_000, "the stop");
});
