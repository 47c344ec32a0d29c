import { after, before, test } from "node:test";
import { createStream, type NatsServer, type NatsStored, readStream, startNats } from "../../../test/servers/nats.ts";
import { applicableCases } from "../../testing/contracts/contract-case.ts";
import { publisherContract } from "../../testing/contracts/publisher-contract.ts";
import type { PublisherHarness, Received } from "../../testing/contracts/publisher-subject.ts";
import { natsPublisher } from "./nats-publisher.ts";

const MESSAGE_BYTES_MAX = 10_000;

let nats: NatsServer;
let opened = 0;

before(async () => {
  nats = await startNats();
});

after(() => nats[Symbol.asyncDispose]());

const harness: PublisherHarness = {
  capabilities: { keyOrderInBatch: true, deduplicates: true, refuses: true, stalls: true, stops: true },
  async open() {
    opened += 1;
    const stream = `CONTRACT${opened}`;
    const topic = `contract.${opened}`;
    await createStream(nats.port, stream, { subjects: [topic], max_msg_size: MESSAGE_BYTES_MAX });
    return {
      publisher: natsPublisher({ servers: [`127.0.0.1:${nats.port}`], stream }),
      topic,
      received: async () => (await readStream(nats.port, stream)).map(receivedOf),
      // Refused by the stream, not by the publisher.
      refuse: async (message) => ({ ...message, payload: Buffer.alloc(MESSAGE_BYTES_MAX + 1) }),
      stall: () => nats.pause(),
      resume: async () => nats.resume(),
      stop: () => nats.kill(),
      start: () => nats.restart(),
      close: async () => {},
    };
  },
};

for (const check of applicableCases(publisherContract, harness)) {
  test(`nats publisher: ${check.rule}`, () => check.run(harness));
}

function receivedOf({ headers, payload, subject }: NatsStored): Received {
  return { id: headers["event-id"] ?? "", topic: subject, key: headers["partition-key"] ?? null, headers, payload };
}
