import assert from "node:assert/strict";
import { test } from "node:test";
import { assertWithin } from "../../../test/servers/pace.ts";
import { startReceiver } from "../../../test/servers/receiver.ts";
import { until } from "../../../test/servers/until.ts";
import { systemClock } from "../../core/clock.ts";
import { createLogger } from "../logs/logger.ts";
import { PushTally } from "../push-tally.ts";
import { MetricsPush } from "./metrics-push.ts";

/** The interval is also how long an answer may take. */
function pusher(url: string, intervalMs: number) {
  const tally = new PushTally();
  const lines: Record<string, unknown>[] = [];
  const stream = { write: (line: string) => void lines.push(JSON.parse(line)) };
  const logger = createLogger({ service: "s", version: "1", level: "info", redact: (line) => line, stream });
  const families = async () => [{ name: "sent", type: "counter", values: [{ value: 1, labels: {} }] }];
  const about = { labels: { job: "j" }, families, tally, logger, clock: systemClock };
  const push = new MetricsPush({ url, intervalMs, ...about });
  return { push, lines, failures: () => tally.figures()[0]?.failures ?? 0 };
}

test("A21 pushes to a receiver that never answers time out, and one warning is logged", async () => {
  await using receiver = await startReceiver();
  receiver.manner = "silent";
  const { push, lines, failures } = pusher(receiver.url, 100);
  push.start();
  await until("some pushes failed", () => failures() >= 3);
  assert.deepEqual(
    lines.map(({ level, receiver: who }) => [level, who]),
    [["warn", "remote_write"]],
  );
  assert.match(String(lines[0]?.reason), /no answer within 100 ms/);
  const startedMs = performance.now();
  await push.stop();
  // A stop does not wait for it either.
  await assertWithin(performance.now() - startedMs, 4_000, "the stop");
});

test("A21 a push is a remote write request, and the last one is sent by the stop", async () => {
  await using receiver = await startReceiver();
  const { push, failures } = pusher(`${receiver.url}/api/v1/write`, 1_500);
  push.start();
  await until("it came", () => receiver.requests.length > 0);
  const before = receiver.requests.length;
  await push.stop();
  assert.ok(receiver.requests.length > before);
  const { path, headers } = receiver.requests[0]!;
  assert.deepEqual(
    [path, headers["content-encoding"], headers["content-type"], headers["x-prometheus-remote-write-version"]],
    ["/api/v1/write", "snappy", "application/x-protobuf", "0.1.0"],
  );
  assert.equal(failures(), 0);
});
