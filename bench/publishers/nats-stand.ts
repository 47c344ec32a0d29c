import { connect, createInbox, headers, type NatsConnection } from "@nats-io/transport-node";
import type { Message } from "../../src/core/event.ts";
import { natsPublisher } from "../../src/publishers/nats/nats-publisher.ts";
import { countMessages, createStream, startNats } from "../../test/servers/nats.ts";
import type { PublisherBench } from "./publisher-stand.ts";

const STREAM = "BENCH";
const TOPIC = "bench.event";

export const natsBench: PublisherBench = {
  name: "nats",
  async open() {
    const nats = await startNats();
    await createStream(nats.port, STREAM, { subjects: [TOPIC] });
    const publisher = natsPublisher({ servers: [`127.0.0.1:${nats.port}`], stream: STREAM });
    const connection = await connect({ servers: `127.0.0.1:${nats.port}` });
    const sendRaw = rawSender(connection);
    return {
      publisher,
      topic: TOPIC,
      sendRaw,
      arrived: () => countMessages(nats.port, STREAM),
      async [Symbol.asyncDispose]() {
        await publisher.close();
        await connection.close();
        await nats[Symbol.asyncDispose]();
      },
    };
  },
};

/**
 * The client's own `js.publish` is four times slower, so this is the harder measure: plain publishes, all answers to one
 * inbox.
 */
function rawSender(connection: NatsConnection): (batch: readonly Message[]) => Promise<void> {
  const inbox = `${createInbox()}.`;
  const waiting = new Map<string, () => void>();
  let sent = 0;
  connection.subscribe(`${inbox}*`, {
    callback: (_error, message) => {
      if (!("seq" in message.json<object>())) throw new Error(message.string());
      waiting.get(message.subject)?.();
      waiting.delete(message.subject);
    },
  });
  return (batch) =>
    new Promise((resolve) => {
      let unanswered = batch.length;
      const answered = () => {
        unanswered -= 1;
        if (unanswered === 0) resolve();
      };
      for (const message of batch) {
        const reply = inbox + sent++;
        const sentHeaders = headers();
        for (const name in message.headers) sentHeaders.append(name, message.headers[name]!);
        sentHeaders.append("Nats-Msg-Id", message.event.id);
        sentHeaders.append("Nats-Expected-Stream", STREAM);
        if (message.key !== null) sentHeaders.append("partition-key", message.key);
        waiting.set(reply, answered);
        connection.publish(message.topic, message.payload, { reply, headers: sentHeaders });
      }
    });
}
