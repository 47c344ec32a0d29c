import { after, before, test } from "node:test";
import { type HttpArrival, type HttpReceiver, startHttpReceiver } from "../../../test/servers/http-receiver.ts";
import { applicableCases } from "../../testing/contracts/contract-case.ts";
import { publisherContract } from "../../testing/contracts/publisher-contract.ts";
import type { PublisherHarness, Received } from "../../testing/contracts/publisher-subject.ts";
import { httpPublisher } from "./http-publisher.ts";

let receiver: HttpReceiver;
let opened = 0;

before(async () => {
  receiver = await startHttpReceiver();
});

after(() => receiver[Symbol.asyncDispose]());

const harness: PublisherHarness = {
  capabilities: { keyOrderInBatch: true, deduplicates: false, refuses: true, stalls: true, stops: true },
  async open() {
    opened += 1;
    const path = `/contract-${opened}`;
    return {
      publisher: httpPublisher({ url: `${receiver.origin}${path}`, sendMs: 20_000 }),
      topic: `topic-${opened}`,
      received: async () =>
        receiver
          .arrivals()
          .filter(({ url }) => url === path)
          .map(receivedOf),
      refuse: async (message) => ({ ...message, headers: { ...message.headers, "x-manner": "status:422" } }),
      stall: () => receiver.pause(),
      resume: async () => receiver.resume(),
      stop: () => receiver.kill(),
      start: () => receiver.restart(),
      close: async () => {},
    };
  },
};

for (const check of applicableCases(publisherContract, harness)) {
  test(`http publisher: ${check.rule}`, () => check.run(harness));
}

function receivedOf({ headers, body }: HttpArrival): Received {
  return {
    id: headers["idempotency-key"] ?? "",
    topic: headers["event-topic"] ?? headers["event-type"] ?? "",
    key: headers["partition-key"] ?? null,
    headers,
    payload: body,
  };
}
