import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import { type ElasticMq, startElasticMq } from "../../../test/servers/elasticmq.ts";
import { startTcpProxy } from "../../../test/servers/tcp-proxy.ts";
import type { Message } from "../../core/event.ts";
import type { Outcome } from "../../core/outcome.ts";
import type { Publisher } from "../../ports/publisher.ts";
import type { SqsPublisherOptions } from "./sqs-config.ts";
import { sqsPublisher } from "./sqs-publisher.ts";

let elasticMq: ElasticMq;
let written = 0;

before(async () => {
  elasticMq = await startElasticMq();
});
after(() => elasticMq[Symbol.asyncDispose]());

function message(key: string | null, payload = Buffer.from("{}")): Message {
  written += 1;
  const id = `00000000-0000-4000-9000-${String(written).padStart(12, "0")}`;
  const event = { id, type: "fault", key, payload, headers: {}, correlationId: null, createdAt: null };
  return { event, topic: "fault", key, payload, headers: { "event-id": id } };
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
function opened(port: number, options: Partial<SqsPublisherOptions> = {}): Publisher & AsyncDisposable {
  const publisher = sqsPublisher({
    region: "eu-central-1",
    queue: "faults.fifo",
    endpoint: `http://127.0.0.1:${port}`,
    credentials: { accessKeyId: "local", secretAccessKey: "local" },
    ...options,
  });
  return { ...publisher, [Symbol.asyncDispose]: () => publisher.close() };
}

interface Batch {
  readonly Entries: readonly { readonly Id: string; readonly MessageBody: string; readonly MessageGroupId?: string }[];
}

/** A scripted service that finds every queue. */
async function startFake(answer: (batch: Batch) => { status?: number; body: object }) {
  const batches: Batch[] = [];
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request) text += chunk;
    const isBatch = String(request.headers["x-amz-target"]).endsWith("SendMessageBatch");
    const asked = JSON.parse(text);
    if (isBatch) batches.push(asked);
    const { body, status = 200 } = isBatch ? answer(asked) : { body: { QueueUrl: "http://localhost/1/faults.fifo" } };
    response.writeHead(status, { "content-type": "application/x-amz-json-1.0" }).end(JSON.stringify(body));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    batches,
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** The client compares the digest with its own. */
const taken = ({ Entries }: Batch) => ({
  body: {
    Successful: Entries.map(({ Id, MessageBody }) => ({
      Id,
      MessageId: Id,
      MD5OfMessageBody: createHash("md5").update(MessageBody).digest("hex"),
    })),
  },
});

function kinds(outcomes: readonly Outcome[]): string[] {
  return outcomes.map((outcome) => ("scope" in outcome ? `${outcome.kind} ${outcome.scope}` : outcome.kind));
}

describe("SQS publisher: answers", () => {
  test("C5 F2 of a batch that is refused in part each entry has its own outcome, and later ones of its key wait", async () => {
    await using fake = await startFake(({ Entries }) => {
      const Failed = Entries.filter(({ MessageGroupId }) => MessageGroupId !== "good").map(
        ({ Id, MessageGroupId }) => ({
          Id,
          Code: MessageGroupId === "bad" ? "InvalidMessageContents" : "InternalError",
          SenderFault: MessageGroupId === "bad",
        }),
      );
      const { Successful } = taken({ Entries: Entries.filter(({ MessageGroupId }) => MessageGroupId === "good") }).body;
      return { body: { Successful, Failed } };
    });
    await using publisher = opened(fake.port);
    const batch = ["bad", "good", "bad", "busy", "good"].map((key) => message(key));
    const outcomes = await publish(publisher, batch);
    assert.deepEqual(kinds(outcomes), ["rejected event", "delivered", "skipped", "retry destination", "delivered"]);
    for (const { Entries } of fake.batches) {
      const groups = Entries.map(({ MessageGroupId }) => MessageGroupId);
      assert.equal(new Set(groups).size, groups.length, "no request has two events of a key");
    }
  });

  test("D4 an entry that the answer does not mention is not delivered", async () => {
    await using fake = await startFake(({ Entries }) => taken({ Entries: Entries.slice(1) }));
    await using publisher = opened(fake.port);
    assert.deepEqual(kinds(await publish(publisher, [message("a"), message("b")])), ["retry destination", "delivered"]);
  });

  for (const [status, type] of [
    [400, "RequestThrottled"],
    [403, "AccessDeniedException"],
    [500, "InternalFailure"],
    [400, "com.amazonaws.sqs#QueueDoesNotExist"],
  ] as const) {
    test(`A4 A8 ${type} blames no event, and is asked once`, async () => {
      await using fake = await startFake(() => ({ status, body: { __type: type, message: "no" } }));
      await using publisher = opened(fake.port);
      const outcomes = await publish(publisher, [message("a"), message(null)]);
      assert.deepEqual(kinds(outcomes), ["retry destination", "retry destination"]);
      assert.equal(fake.batches.length, 1);
    });
  }

  test("A3 what a publish has no time for is not blamed", async () => {
    await using fake = await startFake(taken);
    await using publisher = opened(fake.port, { sendTimeoutMs: 1 });
    const batch = Array.from({ length: 500 }, () => message("hot"));
    const outcomes = kinds(await publish(publisher, batch));
    const sent = outcomes.indexOf("skipped");
    assert.ok(sent >= 0, "not everything was sent");
    assert.deepEqual(new Set(outcomes.slice(sent)), new Set(["skipped"]));
  });

  test("C5 a request that is larger than the server takes goes in parts, and only what is too large alone is dead", async () => {
    const queueUrl = await elasticMq.createQueue("large.fifo");
    await using publisher = opened(elasticMq.port, { queue: "large.fifo", bytesMax: 5_000_000 });
    const sizes = [400_000, 400_000, 1_100_000, 400_000];
    const batch = sizes.map((size) => message(null, Buffer.alloc(size, "x")));
    const outcomes = await publish(publisher, batch, 20_000);
    assert.deepEqual(kinds(outcomes), ["delivered", "delivered", "rejected event", "delivered"]);
    assert.equal((await elasticMq.drain(queueUrl)).length, 3);
  });
});

describe("SQS publisher: connections", () => {
  for (const [queue, least] of [
    ["late.fifo", 1],
    ["late", 2],
  ] as const) {
    test(`D4 D8 an answer that comes too late leaves the outcome open; ${queue} then has it ${least} times`, async () => {
      const queueUrl = await elasticMq.createQueue(queue);
      await using proxy = await startTcpProxy(elasticMq.port);
      await using publisher = opened(proxy.port, { queue });
      const late = message("a");
      await publish(publisher, [message("b")]);
      // The request arrives at once, its answer does not.
      proxy.latencyMs = 150;
      await assert.rejects(publish(publisher, [late], 250), /PUBLISH_UNKNOWN/);
      proxy.latencyMs = 0;
      assert.deepEqual(kinds(await publish(publisher, [late])), ["delivered"]);
      const arrived = await elasticMq.drain(queueUrl);
      const ids = arrived.map(({ MessageAttributes }) => MessageAttributes?.["event-id"]?.StringValue);
      assert.equal(ids.filter((id) => id === late.event.id).length, least);
    });
  }

  test("A4 a connection that is cut in the middle blames no event", async () => {
    await elasticMq.createQueue("cut.fifo");
    await using proxy = await startTcpProxy(elasticMq.port);
    await using publisher = opened(proxy.port, { queue: "cut.fifo" });
    await publish(publisher, [message("a")]);
    proxy.blackhole(true);
    const publishing = publish(publisher, [message("a"), message("b")]);
    setImmediate(() => proxy.cut());
    assert.deepEqual(kinds(await publishing), ["retry destination", "retry destination"]);
  });

  test("A17 an examination names a queue that does not exist, and a server that is none, as a publish does", async () => {
    await using web = await startFake(() => ({ body: {} }));
    for (const [port, expected] of [
      [elasticMq.port, /"absent\.fifo" in eu-central-1 does not exist: create it/],
      [1, /nothing listens there/],
    ] as const) {
      await using publisher = opened(port, { queue: "absent.fifo" });
      const [failed] = await publish(publisher, [message("a")]);
      assert.ok(failed?.kind === "retry", JSON.stringify(failed));
      assert.match(failed.reason, expected);
      const found = await publisher.examine?.(AbortSignal.timeout(30_000));
      assert.deepEqual(found, [{ severity: "error", reason: failed.reason }]);
    }
    await using publisher = opened(web.port);
    assert.deepEqual([await publisher.examine?.(AbortSignal.timeout(30_000)), web.batches], [[], []]);
  });
});
