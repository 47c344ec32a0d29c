import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { after, before, test } from "node:test";
import { type KafkaServer, startKafka } from "../../../test/servers/kafka.ts";
import { headerText, readTopic } from "../../../test/servers/kafka-reader.ts";
import { assertWithin } from "../../../test/servers/pace.ts";
import { startTcpProxy, type TcpProxy } from "../../../test/servers/tcp-proxy.ts";
import { until } from "../../../test/servers/until.ts";
import { isRelayError } from "../../core/errors.ts";
import type { Outcome } from "../../core/outcome.ts";
import { deliver, message, publish, publishersOn, shown } from "./kafka-fixture.test.ts";

let kafka: KafkaServer;
let proxy: TcpProxy;
const { open, closeAll, idsIn } = publishersOn(() => kafka);

before(async () => {
  kafka = await startKafka({
    properties: { "socket.request.max.bytes": 2_000_000 },
    advertise: async (port) => {
      proxy = await startTcpProxy(port);
      return proxy.port;
    },
  });
});

after(async () => {
  await closeAll();
  await proxy[Symbol.asyncDispose]();
  await kafka[Symbol.asyncDispose]();
});

/** Rejects with PUBLISH_UNKNOWN and reports nothing. */
async function assertUnknown(publishing: Promise<unknown>): Promise<void> {
  await assert.rejects(publishing, (error) => isRelayError(error, "PUBLISH_UNKNOWN"));
}

test("a broker that hangs gives no outcome: the event may have been written without an answer", async () => {
  const publisher = open({ requestTimeoutMs: 300 });
  await deliver(publisher, [message("a1", { topic: "hung" })]);
  await kafka.pause();
  const startedMs = performance.now();
  const outcomes: Outcome[] = [];
  const report = (_index: number, outcome: Outcome) => void outcomes.push(outcome);
  const publishing = publisher.publish([message("a2", { topic: "hung" })], report, new AbortController().signal);
  await assertUnknown(publishing);
  await assertWithin(performance.now() - startedMs, 3_000, "the publish");
  kafka.resume();
  assert.deepEqual(outcomes, []);
  await until("the event arrives after all", async () => (await idsIn("hung")) === "a1 a2");
  await deliver(publisher, [message("a3", { topic: "hung" })]);
  assert.equal(await idsIn("hung"), "a1 a2 a3");
});

test("a lost answer is asked for again under the same number, so that the event is there once", async () => {
  const publisher = open();
  await deliver(publisher, [message("a1", { topic: "lost" })]);
  proxy.latencyMs = 150;
  const publishing = publish(publisher, [message("a2", { topic: "lost" })]);
  await until("the event is written, its answer under way", async () => (await idsIn("lost")) === "a1 a2");
  proxy.latencyMs = 0;
  proxy.cut();
  assert.deepEqual(shown(await publishing), ["delivered"]);
  await deliver(publisher, [message("a3", { topic: "lost" })]);
  assert.equal(await idsIn("lost"), "a1 a2 a3");
});

test("a publish that is given up ends at once and leaves the others alone", async () => {
  const publisher = open();
  await Promise.all(["a", "b"].map((key) => deliver(publisher, [message(`${key}1`, { topic: "given-up" })])));
  proxy.blackhole(true);
  const abort = new AbortController();
  const [first, second] = [
    publish(publisher, [message("a2", { topic: "given-up" })], abort.signal),
    publish(publisher, [message("b2", { topic: "given-up" })]),
  ];
  const startedMs = performance.now();
  abort.abort();
  await assertUnknown(first);
  await assertWithin(performance.now() - startedMs, 500, "giving up");
  proxy.blackhole(false);
  assert.deepEqual(shown(await second), ["delivered"]);
  await deliver(publisher, [message("a2", { topic: "given-up" })]);
  const ids = (await idsIn("given-up")).split(" ");
  assert.equal(ids.filter((id) => id === "b2").length, 1);
});

test("A3 A4 connections that break all the time lose nothing, reorder nothing and repeat nothing", async () => {
  const publisher = open();
  const topic = "shaky";
  await kafka.createTopic(topic, { partitions: 4 });
  const keys = ["a", "b", "c", "d", "e", "f"];
  let [unknown, done] = [0, 0];
  const sends = keys.map(async (key) => {
    for (let round = 0; round < 40; round++) {
      const batch = Array.from({ length: 5 }, (_, at) => message(`${key}${round * 5 + at}`, { topic }));
      for (let isDelivered = false; !isDelivered; ) {
        const outcomes = await publish(publisher, batch).catch(() => []);
        isDelivered = outcomes.length > 0 && shown(outcomes).every((it) => it === "delivered");
        if (!isDelivered) unknown += 1;
      }
      done += 1;
      if (done % 6 === 0) proxy.cut();
    }
  });
  await Promise.all(sends);
  const records = await readTopic(kafka.directBrokers, topic);
  for (const key of keys) {
    const ids = records.filter((it) => String(it.key) === key).map((it) => headerText(it, "event-id"));
    const firsts = [...new Set(ids)];
    assert.deepEqual(
      firsts,
      Array.from({ length: 200 }, (_, at) => `${key}${at}`),
    );
    assert.ok(ids.length <= 200 + unknown * 5, "only what got no outcome may be there twice");
  }
});

test("C5 a request that the broker cannot take is answered by silence, and what comes after it gets through", async () => {
  const publisher = open();
  const huge = message("a1", { topic: "huge", payload: Buffer.alloc(3_000_000) });
  await assertUnknown(publish(publisher, [huge]));
  await deliver(publisher, [message("b1", { topic: "huge" })]);
  assert.equal(await idsIn("huge"), "b1");
});

test("A20 an address that refuses, resets, does not answer or does not exist is the destination's fault, and is reported soon", async () => {
  await using resetting = await startServer((socket) => socket.once("data", () => socket.resetAndDestroy()));
  await using silent = await startServer(() => {});
  await using babbling = await startServer((socket) => socket.once("data", () => socket.end(Buffer.alloc(64, 7))));
  const addresses: readonly (readonly [address: string, reason: RegExp])[] = [
    ["127.0.0.1:1", /^retry destination: Kafka at 127\.0\.0\.1:1: connection refused.*check brokers$/],
    ["no-such-host.invalid:9092", /^retry destination: .*host name is unknown.*check brokers$/],
    [resetting.address, /^retry destination: Kafka at .*(tls or sasl|ECONNRESET)/],
    [silent.address, /^retry destination: .*no answer in time/],
    [babbling.address, /^retry destination: Kafka at /],
  ];
  await Promise.all(
    addresses.map(async ([address, expected]) => {
      const startedMs = performance.now();
      const publisher = open({ brokers: [address], requestTimeoutMs: 500, connectTimeoutMs: 500 });
      const [reason] = shown(await publish(publisher, [message("a1")]));
      assert.match(reason ?? "", expected);
      await assertWithin(performance.now() - startedMs, 4_000, address);
    }),
  );
});

test("a leader that cannot be reached while another broker answers fails its topic only, and is named", async () => {
  // The port itself returns the topics, but with the address of the proxy, which refuses connections.
  const publisher = open({ brokers: [`127.0.0.1:${proxy.targetPort}`] });
  proxy.refuse(true);
  const [reason] = shown(await publish(publisher, [message("a1", { topic: "away" })]));
  proxy.refuse(false);
  assert.match(reason ?? "", new RegExp(`^retry topic: topic "away": the leader .*127\\.0\\.0\\.1:${proxy.port}: `));
  await deliver(publisher, [message("a1", { topic: "away" })]);
});

async function startServer(serve: (socket: Socket) => void) {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    serve(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  return {
    address: `127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
