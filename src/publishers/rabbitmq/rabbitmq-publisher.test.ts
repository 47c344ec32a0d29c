import assert from "node:assert/strict";
import { test } from "node:test";
import { startRabbit } from "../../../test/servers/rabbitmq.ts";
import { overRabbit } from "../../../test/servers/rabbitmq-reader.ts";
import { until } from "../../../test/servers/until.ts";
import type { Message } from "../../core/event.ts";
import type { Outcome } from "../../core/outcome.ts";
import type { Publisher } from "../../ports/publisher.ts";
import { rabbitPublisher } from "./rabbitmq-publisher.ts";

const signal = new AbortController().signal;

test("A4 C3 a server without memory blocks its publishers: that is reported with its reason, and passes by itself", async () => {
  await using rabbit = await startRabbit(["vm_memory_high_watermark.absolute = 1MB"]);
  await overRabbit(rabbit.url, async (channel) => {
    await channel.assertQueue("q", { durable: true });
    await channel.bindQueue("q", "amq.topic", "order.placed");
  });
  const publisher = rabbitPublisher({ hosts: [`127.0.0.1:${rabbit.port}`], exchange: "amq.topic" });
  const result = await publish(publisher, messageOf("e-1"));
  assert.match(result, /^retry destination .*it blocks publishers: low on memory/);
  await assert.rejects(publish(publisher, messageOf("e-2")), /it blocks publishers: low on memory.*UNREACHABLE/);
  await rabbit.control("set_vm_memory_high_watermark", "absolute", "1GB");
  await until(
    "it takes messages again",
    async () => (await publish(publisher, messageOf("e-2")).catch(String)) === "delivered",
  );

  await overRabbit(rabbit.url, (channel) => channel.unbindQueue("q", "amq.topic", "order.placed"));
  assert.match(
    await publish(publisher, messageOf("e-3")),
    /^retry topic .*no queue for the routing key "order.placed"/,
  );
  await rabbit.control("set_topic_permissions", "guest", "amq.topic", "^allowed", ".*");
  // A channel remembers for a while what it may do.
  await publisher.close();
  const fresh = rabbitPublisher({ hosts: [`127.0.0.1:${rabbit.port}`], exchange: "amq.topic" });
  const refused = await publish(fresh, messageOf("e-4"));
  assert.match(refused, /^retry topic .*access to topic 'order.placed' in exchange 'amq.topic'/);
  await fresh.close();
});

async function publish(publisher: Publisher, message: Message): Promise<string> {
  let result = "";
  const report = (_index: number, outcome: Outcome) => {
    result = "reason" in outcome ? `${outcome.kind} ${outcome.scope} ${outcome.reason}` : outcome.kind;
  };
  await publisher.publish([message], report, signal);
  return result;
}

function messageOf(id: string): Message {
  const payload = Buffer.from("{}");
  const headers = { "event-id": id };
  const event = { id, type: "order.placed", key: null, payload, headers, correlationId: null, createdAt: null };
  return { event, topic: "order.placed", key: null, headers, payload };
}
