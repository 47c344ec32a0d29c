import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { until } from "../../test/servers/until.ts";
import type { QueueSource } from "../ports/queue-store.ts";
import { memoryPublisher } from "../publishers/memory/memory-publisher.ts";
import { stdoutPublisher } from "../publishers/stdout/stdout-publisher.ts";
import { memorySource } from "../sources/memory/memory-source.ts";
import { createRelay } from "./relay.ts";

/** Short, and yet longer than a busy machine keeps a process from renewing its lease. */
const QUICK = {
  leaseMs: 2_000,
  leaseMarginMs: 500,
  publishTimeoutMs: 1_000,
  pollIntervalMs: 20,
  balanceMs: 50,
  shutdownMs: 200,
};

for (const durableClaims of [false, true]) {
  test(`B1 storage, publisher and relay know each other by their ports only (durable claims: ${durableClaims})`, async () => {
    const lines = new PassThrough();
    const publishers = { memory: memoryPublisher(), stdout: stdoutPublisher({ stream: lines }) };
    const storage = memorySource({ durableClaims });
    storage.insert({ id: "1", type: "a", payload: "x" }, { id: "2", type: "b", payload: "y" });
    const routes = [
      { types: ["a"], destination: "memory" as const },
      { types: ["b"], destination: "stdout" as const },
    ];
    await using relay = createRelay({ sources: [storage], destinations: publishers, routes });
    await relay.drain();
    lines.end();
    assert.deepEqual(
      publishers.memory.delivered.map(({ event }) => event.id),
      ["1"],
    );
    assert.match(await text(lines), /"id":"2"/);
    assert.equal(storage.pending().length, 0);
  });
}

const never = () => new Promise<never>(() => {});

/** Once `isCut`, no call of this process reaches the database, and none is answered. */
function cuttable<T extends object>(port: T, line: { isCut: boolean }): T {
  return new Proxy(port, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      return (...args: unknown[]) => (line.isCut ? never() : value.apply(target, args));
    },
  });
}

function cuttableSource(source: QueueSource, line: { isCut: boolean }): QueueSource {
  return {
    name: source.name,
    membership: cuttable(source.membership, line),
    pipeline: (spec) => cuttable(source.pipeline(spec), line),
    close: async () => {},
  };
}

for (const durableClaims of [false, true]) {
  test(`B2 the Poller claims, the Dispatcher publishes, the Reaper frees what a dead relay held (durable claims: ${durableClaims})`, async () => {
    const storage = memorySource({ durableClaims });
    const line = { isCut: false };
    const silent = memoryPublisher();
    silent.respond(() => "hang");
    await using first = createRelay({
      sources: [cuttableSource(memorySource({ database: storage.database }), line)],
      destinations: { out: silent },
      timing: QUICK,
    });
    storage.insert({ id: "1", type: "t", key: "k" }, { id: "2", type: "t", key: "k" });
    const claimed = new Promise((resolve) =>
      first.on("RunEnded", ({ claimed: count }) => count === 2 && resolve(count)),
    );
    await first.start();
    await claimed;
    line.isCut = true;

    const out = memoryPublisher();
    await using second = createRelay({ sources: [storage], destinations: { out }, timing: QUICK });
    let reaped = 0;
    second.on("InstanceReaped", () => {
      reaped += 1;
    });
    await second.start();
    await until("the second relay delivers what the first one held", () => out.delivered.length === 2);
    // Its lanes are free as soon as its lease is over, and its row goes with the next look.
    await until("the first one is reaped", () => reaped === 1);
    assert.deepEqual(
      out.delivered.map(({ event }) => event.id),
      ["1", "2"],
    );
  });
}
