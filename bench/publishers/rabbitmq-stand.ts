import { type ChannelModel, type ConfirmChannel, connect } from "amqplib";
import type { Message } from "../../src/core/event.ts";
import { rabbitPublisher } from "../../src/publishers/rabbitmq/rabbitmq-publisher.ts";
import { startRabbit } from "../../test/servers/rabbitmq.ts";
import { overRabbit, takeAll } from "../../test/servers/rabbitmq-reader.ts";
import type { PublisherBench } from "./publisher-stand.ts";

const EXCHANGE = "bench";
const QUEUE = "bench";
const TOPIC = "bench.event";

export const rabbitBench: PublisherBench = {
  name: "rabbitmq",
  async open() {
    const rabbit = await startRabbit(["vm_memory_high_watermark.absolute = 2GB"]);
    await overRabbit(rabbit.url, async (channel) => {
      await channel.assertExchange(EXCHANGE, "topic", { durable: true });
      await channel.assertQueue(QUEUE, { durable: true, arguments: { "x-queue-type": "quorum" } });
      await channel.bindQueue(QUEUE, EXCHANGE, "#");
    });
    const publisher = rabbitPublisher({ hosts: [`127.0.0.1:${rabbit.port}`], exchange: EXCHANGE });
    const raw = rawSender(rabbit.url);
    let taken = 0;
    return {
      publisher,
      topic: TOPIC,
      sendRaw: raw.send,
      async arrived() {
        taken += (await takeAll(rabbit.url, QUEUE)).length;
        return taken;
      },
      async [Symbol.asyncDispose]() {
        await publisher.close();
        await raw.close();
        await rabbit[Symbol.asyncDispose]();
      },
    };
  },
};

/** A confirm channel for each batch that is under way, on a connection of its own: faster than all of them on one. */
function rawSender(url: string) {
  const models: ChannelModel[] = [];
  const idle: ConfirmChannel[] = [];
  const openChannel = async () => {
    const model = await connect(url, { noDelay: true });
    models.push(model);
    return await model.createConfirmChannel();
  };
  return {
    async send(batch: readonly Message[]): Promise<void> {
      const channel = idle.pop() ?? (await openChannel());
      for (const { event, headers, key, payload } of batch) {
        channel.publish(EXCHANGE, TOPIC, payload, {
          messageId: event.id,
          type: event.type,
          persistent: true,
          mandatory: true,
          headers: { ...headers, "partition-key": key },
        });
      }
      await channel.waitForConfirms();
      idle.push(channel);
    },
    close: async () => void (await Promise.all(models.map((model) => model.close()))),
  };
}
