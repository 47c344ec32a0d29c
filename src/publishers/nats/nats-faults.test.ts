import assert from "node:assert/strict";
import { createServer } from "node:net";
import { after, before, describe, test } from "node:test";
import { createStream, type NatsServer, readStream, startNats } from "../../../test/servers/nats.ts";
import { startTcpProxy } from "../../../test/servers/tcp-proxy.ts";
import { until } from "../../../test/servers/until.ts";
import type { Message } from "../../core/event.ts";
import type { Outcome } from "../../core/outcome.ts";
import type { Publisher } from "../../ports/publisher.ts";
import type { NatsPublisherOptions } from "./nats-config.ts";
import { natsPublisher } from "./nats-publisher.ts";
import { missingSubjects } from "./nats-topic-check.ts";

const LOGINS = `accounts { A { jetstream: enabled, users: [
  { user: all, password: secret-1 },
  { user: some, password: secret-2, permissions: { publish: ["fault.>", "$JS.>"], subscribe: ["_INBOX.>"] } },
  { user: deaf, password: secret-3, permissions: { publish: [">"], subscribe: ["nothing"] } }
] } }
no_auth_user: all`;

let nats: NatsServer;
let written = 0;

before(async () => {
  nats = await startNats({ config: LOGINS });
  await createStream(nats.port, "FAULTS", { subjects: ["fault.>"] });
});
after(() => nats[Symbol.asyncDispose]());

function message(changes: Partial<Message> = {}): Message {
  written += 1;
  const id = `00000000-0000-4000-9000-${String(written).padStart(12, "0")}`;
  const topic = changes.topic ?? "fault.one";
  const key = changes.key === undefined ? id : changes.key;
  const payload = changes.payload ?? Buffer.from(id);
  const event = { id, type: topic, key, payload, headers: {}, correlationId: null, createdAt: null };
  return { event, topic, key, payload, headers: { "event-id": id, ...changes.headers } };
}

async function publish(publisher: Publisher, batch: readonly Message[], timeoutMs = 5_000): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  await publisher.publish(
    batch,
    (index, outcome) => {
      outcomes[index] = outcome;
    },
    AbortSignal.timeout(timeoutMs),
  );
  return outcomes;
}

/** A publisher that is closed at the end of the test. */
function opened(options: Partial<NatsPublisherOptions> = {}): Publisher & AsyncDisposable {
  const publisher = natsPublisher({ servers: [`127.0.0.1:${nats.port}`], connectTimeoutMs: 500, ...options });
  return { ...publisher, [Symbol.asyncDispose]: () => publisher.close() };
}

async function arrivals(id: string): Promise<number> {
  return (await readStream(nats.port, "FAULTS")).filter(({ headers }) => headers["event-id"] === id).length;
}

function assertFailed(outcome: Outcome | undefined, scope: string, expected: RegExp): void {
  assert.ok(outcome?.kind === "retry", JSON.stringify(outcome));
  assert.equal(outcome.scope, scope);
  assert.match(outcome.reason, expected);
}

describe("NATS publisher: subjects, streams and messages", () => {
  test("C5 D6 a subject without a stream waits, the others of the batch are delivered", async () => {
    await using publisher = opened();
    const outcomes = await publish(publisher, [message(), message({ topic: "nobody.listens" }), message()]);
    assert.deepEqual([outcomes[0]?.kind, outcomes[2]?.kind], ["delivered", "delivered"]);
    assertFailed(outcomes[1], "topic", /"nobody\.listens": no stream takes it/);
  });

  test("C5 a stream of another name is not taken for the wanted one", async () => {
    await using publisher = opened({ stream: "ORDERS" });
    assertFailed((await publish(publisher, [message()]))[0], "topic", /"FAULTS", expected "ORDERS"/);
  });

  test("C5 a full stream keeps its events waiting and takes them when there is room", async () => {
    await createStream(nats.port, "FULL", { subjects: ["full"], max_msgs: 1, discard: "new" });
    await using publisher = opened();
    const [first, second] = await publish(publisher, [message({ topic: "full" }), message({ topic: "full" })]);
    assert.equal(first?.kind, "delivered");
    assertFailed(second, "topic", /maximum messages exceeded/);
  });

  for (const [what, changes] of [
    ["a subject with a space", { topic: "order placed" }],
    ["a wildcard as subject", { topic: "fault.*" }],
    ["a command to the server as subject", { topic: "$JS.API.STREAM.DELETE.FAULTS" }],
    ["a header with a line break", { headers: { note: "a\r\nNats-Rollup: all" } }],
    ["a header name with a colon", { headers: { "a:b": "1" } }],
    ["a header without a name", { headers: { "": "1" } }],
    ["a header that is a command to the server", { headers: { "Nats-Rollup": "all" } }],
    ["half a character in a header", { headers: { note: "\ud800" } }],
    ["a key with a line break", { key: "a\nb" }],
    ["more than the server's max_payload", { payload: Buffer.alloc(1_048_577) }],
    ["more than max_payload together with the headers", { payload: Buffer.alloc(1_048_570) }],
  ] satisfies [string, Partial<Message>][]) {
    test(`C5 G2 ${what} is rejected for good and harms no other`, async () => {
      await using publisher = opened();
      const outcomes = await publish(publisher, [message(), message(changes), message()]);
      assert.deepEqual(
        outcomes.map(({ kind }) => kind),
        ["delivered", "rejected", "delivered"],
      );
    });
  }

  test("B6 header names and values keep their case and their characters", async () => {
    await using publisher = opened();
    const headers = { "X-Mixed_Case": "Käse: 100 %", "content-type": "application/json", empty: "" };
    const sent = message({ headers, key: "schlüssel" });
    await publish(publisher, [sent]);
    const stored = (await readStream(nats.port, "FAULTS")).find((it) => it.headers["event-id"] === sent.event.id);
    for (const [name, value] of Object.entries(headers)) assert.equal(stored?.headers[name], value);
    assert.equal(stored?.headers["Nats-Msg-Id"], sent.event.id);
    assert.equal(stored?.headers["partition-key"], "schlüssel");
  });

  test("A2 events of two tables with the same number both arrive, a repetition of one does not", async () => {
    await using publisher = opened();
    const [one, two] = ["first", "second"].map((text) => {
      const made = message({ payload: Buffer.from(text) });
      return { ...made, event: { ...made.event, id: "1" }, headers: { "event-id": "table-1" } };
    });
    await publish(publisher, [one!, two!]);
    await publish(publisher, [one!]);
    assert.equal(await arrivals("table-1"), 2);
  });

  test("A3 a key with more messages than its time allows is sent in part, the rest is not blamed", async () => {
    await using publisher = opened({ sendTimeoutMs: 1 });
    const batch = Array.from({ length: 2_000 }, () => message({ key: "hot" }));
    const outcomes = await publish(publisher, batch);
    const kinds = outcomes.map(({ kind }) => kind);
    const sent = kinds.indexOf("skipped");
    assert.ok(sent > 0, "some were sent, some were not");
    assert.deepEqual(new Set(kinds.slice(0, sent)), new Set(["delivered"]));
    assert.deepEqual(new Set(kinds.slice(sent)), new Set(["skipped"]));
  });

  test("D6 missing subjects are reported before anything is sent", async () => {
    const options = { servers: [`127.0.0.1:${nats.port}`] };
    const subjects = ["fault.one", "nobody.listens"];
    assert.deepEqual([...(await missingSubjects(options, subjects))], [["nobody.listens", "no stream takes it"]]);
    const wanted = await missingSubjects({ ...options, stream: "ORDERS" }, ["fault.one"]);
    assert.deepEqual([...wanted], [["fault.one", "the stream FAULTS takes it, not ORDERS"]]);
    const nowhere = missingSubjects({ servers: ["127.0.0.1:1"] }, subjects);
    await assert.rejects(nowhere, /DESTINATION_UNREACHABLE/);
  });
});

describe("NATS publisher: connections", () => {
  test("A4 a wrong password, a denied subject and a denied inbox are reported as what they are", async () => {
    await using wrong = opened({ user: "all", password: "hunter2" });
    const [refused] = await publish(wrong, [message()]);
    assertFailed(refused, "destination", /[Aa]uthorization.*check user/);
    assert.doesNotMatch(JSON.stringify(refused), /hunter2/);
    await using some = opened({ user: "some", password: "secret-2" });
    const [allowed, denied] = await publish(some, [message(), message({ topic: "full" })]);
    assert.equal(allowed?.kind, "delivered");
    assertFailed(denied, "topic", /no permission to publish/);
    await using deaf = opened({ user: "deaf", password: "secret-3" });
    await assert.rejects(publish(deaf, [message()]), /DESTINATION_UNREACHABLE/);
  });

  test("A17 an examination names a wrong password and a missing stream, and leaves a login alone that may not ask", async () => {
    for (const [options, expected] of [
      [{ user: "all", password: "wrong" }, /NATS at 127.*check user, password, token or credentials/],
      [{ stream: "ABSENT" }, /the stream "ABSENT" does not exist: create it/],
    ] as const) {
      await using publisher = opened(options);
      const [found, ...others] = (await publisher.examine?.(AbortSignal.timeout(30_000))) ?? [];
      assert.deepEqual([found?.severity, others], ["error", []]);
      assert.match(found?.reason ?? "", expected);
    }
    for (const options of [{ stream: "FAULTS" }, { user: "some", password: "secret-2" }]) {
      await using publisher = opened(options);
      assert.deepEqual(await publisher.examine?.(AbortSignal.timeout(30_000)), []);
    }
  });

  test("A4 the next server is tried when one does not answer", async () => {
    await using publisher = opened({ servers: ["127.0.0.1:1", `127.0.0.1:${nats.port}`] });
    assert.equal((await publish(publisher, [message()]))[0]?.kind, "delivered");
  });

  test("A4 a server that accepts and hangs, and one that is not NATS, are reported in time and leave no connection", async () => {
    await using proxy = await startTcpProxy(nats.port);
    proxy.blackhole(true);
    await using publisher = opened({ servers: [`127.0.0.1:${proxy.port}`] });
    assertFailed((await publish(publisher, [message()]))[0], "destination", /no greeting/);
    // Only then does the proxy pass on that a connection has ended.
    proxy.blackhole(false);
    await until("no connection is left", () => proxy.connectionCount === 0);
    const other = createServer((socket) => socket.on("error", () => {}).end("HTTP/1.1 400 Bad Request\r\n\r\n"));
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    const { port } = other.address() as { port: number };
    await using strange = opened({ servers: [`127.0.0.1:${port}`] });
    assertFailed((await publish(strange, [message()]))[0], "destination", /is not NATS/);
    other.close();
  });

  test("D4 D8 a connection cut in the middle leaves the outcome open, and the repetition makes no duplicate", async () => {
    await using proxy = await startTcpProxy(nats.port);
    await using publisher = opened({ servers: [`127.0.0.1:${proxy.port}`] });
    const batch = [message(), message()];
    await publish(publisher, [message()]);
    proxy.latencyMs = 200;
    const publishing = publish(publisher, batch);
    // The answers are on their way back, and stay there.
    await until("both have arrived", async () => (await arrivals(batch[1]!.event.id)) === 1);
    proxy.cut();
    await assert.rejects(publishing, /DESTINATION_UNREACHABLE/);
    proxy.latencyMs = 0;
    const again = await publish(publisher, batch);
    assert.deepEqual(
      again.map(({ kind }) => kind),
      ["delivered", "delivered"],
    );
    assert.deepEqual([await arrivals(batch[0]!.event.id), await arrivals(batch[1]!.event.id)], [1, 1]);
  });

  test("D4 D8 an answer after the timeout comes too late, and the repetition makes no duplicate", async () => {
    await using proxy = await startTcpProxy(nats.port);
    await using publisher = opened({ servers: [`127.0.0.1:${proxy.port}`] });
    await publish(publisher, [message()]);
    proxy.blackhole(true);
    const late = message();
    await assert.rejects(publish(publisher, [late], 200), /PUBLISH_UNKNOWN/);
    proxy.blackhole(false);
    assert.equal((await publish(publisher, [late]))[0]?.kind, "delivered");
    assert.equal(await arrivals(late.event.id), 1);
  });

  test("A4 without JetStream every subject waits with a reason that says so", async () => {
    await using bare = await startNats({ jetStream: false });
    await using publisher = opened({ servers: [`127.0.0.1:${bare.port}`] });
    assertFailed((await publish(publisher, [message()]))[0], "topic", /check that JetStream is enabled/);
    const found = await publisher.examine?.(AbortSignal.timeout(30_000));
    assert.match(found?.[0]?.reason ?? "", /JetStream is not enabled: enable it on the server/);
  });
});
