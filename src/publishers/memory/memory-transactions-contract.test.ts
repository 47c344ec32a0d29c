import { test } from "node:test";
import type { Message } from "../../core/event.ts";
import { rejected } from "../../core/outcome.ts";
import { applicableCases } from "../../testing/contracts/contract-case.ts";
import type { Received } from "../../testing/contracts/publisher-subject.ts";
import { transactionsContract } from "../../testing/contracts/transactions-contract.ts";
import type { TransactionsHarness, TransactionsSubject } from "../../testing/contracts/transactions-stage.ts";
import { type MemoryPublisher, memoryPublisher } from "./memory-publisher.ts";
import { TransactionBroker } from "./memory-transaction-broker.ts";

const harness: TransactionsHarness = {
  capabilities: { refuses: true, stalls: true, losesAnswers: true },
  open: async () => subjectOf(new TransactionBroker<Message>({ ringSize: 8 })),
};

for (const check of applicableCases(transactionsContract, harness)) {
  test(`memory publisher with transactions: ${check.rule}`, () => check.run(harness));
}

function subjectOf(broker: TransactionBroker<Message>): TransactionsSubject {
  const publishers: MemoryPublisher[] = [];
  const refused = new Set<string>();
  const received: Received[] = [];
  const state = { isStalled: false, losesAnswer: false };
  broker.onVisible((messages) => {
    for (const { event, topic, key, headers, payload } of messages) {
      received.push({ id: event.id, topic, key, headers, payload });
    }
  });
  const user = (): MemoryPublisher => {
    const publisher = memoryPublisher({ transactions: broker });
    publisher.respond(({ event }) => (refused.has(event.id) ? rejected("refused") : { kind: "delivered" }));
    publisher.respondToTransactions((step) => {
      if (state.isStalled) return "hang";
      if (step !== "commit" || !state.losesAnswer) return "answer";
      state.losesAnswer = false;
      return "unanswered";
    });
    publishers.push(publisher);
    return publisher;
  };
  return {
    topic: "contract",
    user: async () => {
      const publisher = user();
      return { transactions: publisher.transactions!, close: () => publisher.close() };
    },
    visible: async () => received,
    refuse: async (message) => {
      refused.add(message.event.id);
      return message;
    },
    stall: async () => {
      state.isStalled = true;
    },
    resume: async () => {
      state.isStalled = false;
    },
    loseAnswerToCommit: async () => {
      state.losesAnswer = true;
    },
    close: async () => {},
  };
}
