import { randomUUID } from "node:crypto";
import { type Channel, type ConsumeMessage, connect } from "amqplib";

/** Does something over a connection of its own; an error of the server rejects. */
export async function overRabbit<T>(url: string, work: (channel: Channel) => Promise<T>): Promise<T> {
  const connection = await connect(url);
  connection.on("error", () => {});
  try {
    const channel = await connection.createChannel();
    channel.on("error", () => {});
    const result = await work(channel);
    // The end of a connection overtakes what its channels have not sent yet.
    await channel.close();
    return result;
  } finally {
    await connection.close().catch(() => {});
  }
}

/** Takes all messages out of a queue, in their order. */
export function takeAll(url: string, queue: string): Promise<ConsumeMessage[]> {
  return overRabbit(url, async (channel) => {
    const taken: ConsumeMessage[] = [];
    const lastId = randomUUID();
    const { promise: emptied, resolve } = Promise.withResolvers<void>();
    const take = (message: ConsumeMessage | null) => {
      if (message === null) return;
      if (message.properties.messageId === lastId) resolve();
      else taken.push(message);
    };
    // Without acknowledgements: a quorum queue forgets the last ones when the channel closes, and delivers again.
    await channel.consume(queue, take, { noAck: true });
    // A queue keeps the order: what was there before comes before.
    channel.sendToQueue(queue, Buffer.alloc(0), { messageId: lastId });
    await emptied;
    return taken;
  });
}
