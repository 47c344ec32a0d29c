import { test } from "node:test";
import { headerText, readTopic } from "../../../test/servers/kafka-reader.ts";
import { proxiedKafka } from "../../../test/servers/proxied-kafka.ts";
import { applicableCases } from "../../testing/contracts/contract-case.ts";
import { transactionsContract } from "../../testing/contracts/transactions-contract.ts";
import type { TransactionsHarness } from "../../testing/contracts/transactions-stage.ts";
import { kafkaSettings } from "./kafka-config.ts";
import { kafkaTransactions } from "./kafka-transactions.ts";

const stand = proxiedKafka();
let subjects = 0;

const harness: TransactionsHarness = {
  capabilities: { refuses: true, stalls: true, losesAnswers: true },
  async open() {
    const service = `contract-${++subjects}`;
    await stand.kafka.createTopic(service, { partitions: 3 });
    // The default is a ring of thousands, which takes as many transactions to fill.
    const settings = kafkaSettings({ brokers: [stand.kafka.brokers], service, ledger: { ringSize: 64 } });
    return {
      topic: service,
      user: async () => {
        const transactions = kafkaTransactions(settings);
        return { transactions, close: () => transactions.close() };
      },
      visible: async () =>
        (await readTopic(stand.kafka.directBrokers, service)).map((record) => ({
          id: headerText(record, "event-id") ?? "",
          topic: record.topic,
          key: record.key?.toString() ?? null,
          headers: {},
          payload: record.value ?? Buffer.alloc(0),
        })),
      refuse: async (message) => ({ ...message, payload: Buffer.alloc(2 << 20) }),
      stall: () => stand.kafka.pause(),
      resume: async () => stand.kafka.resume(),
      loseAnswerToCommit: async () => {
        stand.proxy.decide = ({ name }) => {
          if (name !== "EndTxn") return { kind: "pass" };
          stand.proxy.decide = () => ({ kind: "pass" });
          return { kind: "lose-answer", reset: true };
        };
      },
      close: async () => {},
    };
  },
};

for (const check of applicableCases(transactionsContract, harness))
  test(`Kafka: ${check.rule}`, { timeout: 240_000 }, () => check.run(harness));
