import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { until } from "../../test/servers/until.ts";
import { RelayError } from "../core/errors.ts";
import { memoryPublisher } from "../publishers/memory/memory-publisher.ts";
import { memorySource } from "../sources/memory/memory-source.ts";
import { QUICK } from "./failure-stage.test.ts";
import { createRelay, type Relay } from "./relay.ts";

const PIPELINE = "memory->out";

/** A source whose tables appear when the test says so. */
function stage(options: { readonly publisher?: ReturnType<typeof memoryPublisher> } = {}) {
  const source = memorySource();
  const { pipeline } = source;
  let missing: string | null = "the table shop.outbox does not exist";
  let closed = false;
  const relay = createRelay({
    sources: [
      {
        ...source,
        close: async () => {
          closed = true;
          await source.close();
        },
        pipeline: (spec) => {
          const store = pipeline(spec);
          const { prepare } = store;
          store.prepare = async () => {
            if (missing !== null) throw new RelayError("TABLE_MISSING", missing);
            return await prepare.call(store);
          };
          return store;
        },
      },
    ],
    destinations: { out: options.publisher ?? memoryPublisher() },
    timing: { ...QUICK, backoffInitialMs: 10, backoffMaxMs: 50 },
    lanes: 2,
  });
  const appear = () => {
    missing = null;
  };
  return { source, relay, appear, isClosed: () => closed };
}

const isPending = async (promise: Promise<unknown>) =>
  (await Promise.race([promise.then(() => "settled"), Promise.resolve("pending")])) === "pending";

const reasonsOf = (relay: Relay) => relay.unready().map(({ pipeline, reason }) => `${pipeline}: ${reason}`);

describe("a relay is ready when it is connected, its tables are found and its lanes are taken", () => {
  test("H4 start waits for nothing; ready stays pending while a table is missing, and unready says which", async () => {
    const { appear, relay } = stage();
    await using _ = relay;
    assert.deepEqual(reasonsOf(relay), [`${PIPELINE}: the relay was not started`]);
    await relay.start();
    await until("the missing table is named", () => /shop\.outbox does not exist/.test(reasonsOf(relay).join()));
    assert.ok(await isPending(relay.ready));
    appear();
    await relay.ready;
    assert.deepEqual(relay.unready(), []);
  });

  test("H4 it is ready while its destination takes nothing: the events wait", async () => {
    const publisher = memoryPublisher();
    publisher.respond(() => ({ kind: "retry", scope: "destination", reason: "down" }));
    const { appear, relay, source } = stage({ publisher });
    await using _ = relay;
    source.insert({ id: "1", type: "t", key: "k" });
    appear();
    await relay.start();
    await relay.ready;
    assert.deepEqual(relay.unready(), []);
  });

  test("H4 the second of two relays is ready too, whoever has the lanes", async () => {
    const source = memorySource();
    const both = [1, 2].map(() =>
      createRelay({ sources: [source], destinations: { out: memoryPublisher() }, timing: QUICK, lanes: 1 }),
    );
    for (const relay of both) await relay.start();
    await Promise.all(both.map((relay) => relay.ready));
    assert.deepEqual(both.map(reasonsOf), [[], []]);
    await Promise.all(both.map((relay) => relay.stop()));
  });
});

describe("a relay that stops", () => {
  test("C1 H4 before it is ready rejects ready with what it waited for, once the stop is over", async () => {
    const { isClosed, relay } = stage();
    await relay.start();
    await until("the missing table is named", () => /shop\.outbox does not exist/.test(reasonsOf(relay).join()));
    const refused = assert.rejects(
      relay.ready.finally(() => assert.ok(isClosed(), "the sources are closed by then")),
      { code: "RELAY_STOPPED", message: /memory->out: the table shop\.outbox does not exist/ },
    );
    await relay.stop();
    await Promise.all([refused, relay.ended]);
    assert.deepEqual(reasonsOf(relay), [`${PIPELINE}: the relay was stopped`]);
    await assert.rejects(relay.start(), { code: "RELAY_STOPPED" });
  });

  test("C1 H4 after it was ready keeps ready resolved, and settles ended with the stop", async () => {
    const { appear, relay } = stage();
    appear();
    await relay.start();
    await relay.ready;
    assert.ok(await isPending(relay.ended));
    await Promise.all([relay.stop(), relay.ended]);
    await relay.ready;
  });

  test("C1 H4 without a start ends too, and nobody who ignores ready is told", async () => {
    const { relay } = stage();
    await relay.stop();
    await relay.ended;
    await assert.rejects(relay.ready, { code: "RELAY_STOPPED", message: /the relay was not started/ });
  });
});
