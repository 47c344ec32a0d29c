import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Sink, startSink } from "./sink.ts";
import { connectSink, type SinkAnswer, type SinkClient, type SinkEvent } from "./sink-client.ts";

const never = new AbortController().signal;

describe("the sink", () => {
  test("logs events with all their parts, in order, before it answers them", async () => {
    await withSink(async (sink, client) => {
      const binary = Buffer.from([0, 10, 255, 34]);
      const sent = [
        event("1", { payload: binary, headers: { "content-type": "x\n" } }),
        event("2", { key: null, payload: Buffer.alloc(0) }),
        event("3", { payload: Buffer.alloc(300_000, "ü") }),
      ];
      const missing: string[] = [];
      const inLog = async (id: string) =>
        (await sink.arrivals()).some((arrival) => arrival.id === id) || missing.push(id);
      const checks: Promise<unknown>[] = [];
      await client.send(sent, (index) => checks.push(inLog(sent[index]?.id ?? "")), never);
      await Promise.all(checks);
      assert.deepEqual(missing, []);
      const arrivals = await sink.arrivals();
      assert.deepEqual(
        arrivals.map(({ id, topic, key, payload, headers }) => ({ id, topic, key, payload, headers })),
        sent,
      );
    });
  });

  test("keeps acknowledged events over kill -9 and goes on in the same log", async () => {
    await withSink(async (sink, client) => {
      await send(client, [event("1")]);
      await sink.kill();
      await assert.rejects(send(client, [event("2")]), /connection to the sink on port \d+ was (lost|refused)/);
      await sink.restart();
      await send(client, [event("2")]);
      assert.deepEqual(await ids(sink), ["1", "2"]);
    });
  });

  test("answers many batches on one connection, each event by its index", async () => {
    await withSink(async (sink, client) => {
      const batches = Array.from({ length: 50 }, (_, b) => Array.from({ length: 20 }, (_, e) => event(`${b}-${e}`)));
      const answers = await Promise.all(batches.map((batch) => send(client, batch)));
      assert.ok(answers.flat().every((answer) => answer.kind === "ok"));
      assert.deepEqual(
        await ids(sink),
        batches.flat().map(({ id }) => id),
      );
    });
  });
});

describe("faults", () => {
  test("reject, retry and unknown topic strike what they match, as often as ordered", async () => {
    await withSink(async (sink, client) => {
      await sink.order({ kind: "reject", id: /^b/, reason: "too large" });
      await sink.order({ kind: "retry", key: "k2", afterMs: 250, count: 1 });
      await sink.order({ kind: "unknown-topic", topic: "lost" });
      const events = [
        event("a"),
        event("b"),
        event("c", { key: "k2" }),
        event("d", { key: "k2" }),
        event("e", { topic: "lost" }),
      ];
      assert.deepEqual(await send(client, events), [
        { kind: "ok" },
        { kind: "reject", reason: "too large" },
        { kind: "retry", reason: "busy as ordered", afterMs: 250 },
        { kind: "ok" },
        { kind: "retry", reason: "unknown topic", scope: "topic" },
      ]);
      assert.deepEqual(await ids(sink), ["a", "d"]);
      const attempts = await sink.attempts();
      assert.deepEqual(
        attempts.map(({ fault }) => fault),
        [null, "reject", "retry", null, "unknown-topic"],
      );
      await sink.clearFaults();
      await send(client, events);
      assert.deepEqual(await ids(sink), ["a", "d", "a", "b", "c", "d", "e"]);
    });
  });

  test("delay: the event takes effect at once and its answer comes late, after those of others", async () => {
    await withSink(async (sink, client) => {
      await sink.order({ kind: "delay", id: "slow", ms: 60 });
      const started = performance.now();
      const order: number[] = [];
      await client.send([event("slow"), event("quick")], (index) => order.push(index), never);
      assert.deepEqual(order, [1, 0]);
      assert.ok(performance.now() - started >= 59);
      assert.deepEqual(await ids(sink), ["slow", "quick"]);
    });
  });

  test("hang: neither effect nor answer, until the client gives up", async () => {
    await withSink(async (sink, client) => {
      await sink.order({ kind: "hang", id: "1", count: 1 });
      const abort = new AbortController();
      const answered: number[] = [];
      const sending = client.send(
        [event("1"), event("2")],
        (index) => {
          answered.push(index);
          abort.abort(new Error("given up"));
        },
        abort.signal,
      );
      await assert.rejects(sending, /given up/);
      assert.deepEqual(answered, [1]);
      await send(client, [event("1")]);
      assert.deepEqual(await ids(sink), ["2", "1"]);
    });
  });

  test("drop after effect: logged, then the connection ends without an answer", async () => {
    await withSink(async (sink, client) => {
      await sink.order({ kind: "drop-after-effect", id: "2", count: 1 });
      await assert.rejects(send(client, [event("1"), event("2"), event("3")]), /was lost/);
      assert.deepEqual(await ids(sink), ["1", "2"]);
      await send(client, [event("2")]);
      assert.deepEqual(await ids(sink), ["1", "2", "2"]);
    });
  });

  test("refuse: no connection until the faults are cleared", async () => {
    await withSink(async (sink, client) => {
      await send(client, [event("1")]);
      await sink.order({ kind: "refuse" });
      await assert.rejects(send(client, [event("2")]), /was (lost|refused)/);
      await assert.rejects(send(client, [event("2")]), /was refused.*ECONNREFUSED/);
      await sink.clearFaults();
      await send(client, [event("2")]);
      assert.deepEqual(await ids(sink), ["1", "2"]);
    });
  });
});

describe("the sink's client", () => {
  test("an abort while the sink is paused keeps the abandoned events from arriving after the pause", async () => {
    await withSink(async (sink, client) => {
      await send(client, [event("1")]);
      await sink.pause();
      const abort = new AbortController();
      const abandoned = client.send([event("2")], () => {}, abort.signal);
      // The bystander shows that the abandoned batch had left: both go out on the same connection, in order.
      const bystander = send(client, [event("3")]);
      setImmediate(() => abort.abort(new Error("given up")));
      await assert.rejects(abandoned, /given up/);
      await assert.rejects(bystander, /another batch was aborted/);
      sink.resume();
      await send(client, [event("4")]);
      assert.deepEqual(await ids(sink), ["1", "4"]);
    });
  });

  test("sends nothing on an aborted signal or after close, and close rejects what is under way", async () => {
    await withSink(async (sink, client) => {
      await assert.rejects(
        client.send([event("1")], () => {}, AbortSignal.abort(new Error("too late"))),
        /too late/,
      );
      await sink.order({ kind: "hang", count: 1 });
      const [outcome] = await Promise.allSettled([
        send(client, [event("2")]),
        sink.attempts().then(() => client.close()),
      ]);
      assert.equal(outcome.status, "rejected");
      await assert.rejects(send(client, [event("3")]), /closed/);
      assert.deepEqual(await ids(sink), []);
    });
  });

  test("waitFor tells what is there when it waits in vain", async () => {
    await withSink(async (sink, client) => {
      const waiting = sink.waitFor(2);
      await send(client, [event("1"), event("2")]);
      assert.equal((await waiting).length, 2);
      assert.equal((await sink.waitFor((arrivals) => arrivals.some(({ id }) => id === "2"))).length, 2);
      await assert.rejects(sink.waitFor(3, 1), /3 arrivals at the sink; there are 2/);
    });
  });
});

async function withSink(run: (sink: Sink, client: SinkClient) => Promise<void>): Promise<void> {
  await using sink = await startSink();
  const client = connectSink(sink.port);
  try {
    await run(sink, client);
  } finally {
    await client.close();
  }
}

function event(id: string, parts: Partial<SinkEvent> = {}): SinkEvent {
  return { id, topic: "orders", key: "k1", payload: Buffer.from(`payload ${id}`), headers: {}, ...parts };
}

async function send(client: SinkClient, events: SinkEvent[]): Promise<SinkAnswer[]> {
  const answers: SinkAnswer[] = [];
  await client.send(
    events,
    (index, answer) => {
      answers[index] = answer;
    },
    never,
  );
  return answers;
}

async function ids(sink: Sink): Promise<string[]> {
  return (await sink.arrivals()).map(({ id }) => id);
}
