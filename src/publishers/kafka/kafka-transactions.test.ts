import { after, before, test } from "node:test";
import { type KafkaServer, startKafka } from "../../../test/servers/kafka.ts";
import { type KafkaProxy, startKafkaProxy } from "../../../test/servers/kafka-proxy.ts";
import { headerText, readTopic } from "../../../test/servers/kafka-reader.ts";
import { applicable } from "../../testing/contracts/contract-case.ts";
import { transactionsContract } from "../../testing/contracts/transactions-contract.ts";
import type { TransactionsHarness } from "../../testing/contracts/transactions-subject.ts";
import { kafkaSettings } from "./kafka-config.ts";
import { kafkaTransactions } from "./kafka-transactions.ts";

let kafka: KafkaServer;
let proxy: KafkaProxy;
let subjects = 0;

before(async () => {
  kafka = await startKafka({
    advertise: async (port) => {
      proxy = await startKafkaProxy({ targetPort: port });
      return proxy.port;
    },
  });
});

after(async () => {
  await kafka[Symbol.asyncDispose]();
  await proxy[Symbol.asyncDispose]();
});

const harness: TransactionsHarness = {
  capabilities: { refuses: true, stalls: true, losesAnswers: true },
  async open() {
    const service = `contract-${++subjects}`;
    await kafka.createTopic(service, { partitions: 3 });
    const settings = kafkaSettings({ brokers: [kafka.brokers], service });
    return {
      topic: service,
      user: async () => {
        const transactions = kafkaTransactions(settings);
        return { transactions, close: () => transactions.close() };
      },
      visible: async () =>
        (await readTopic(kafka.directBrokers, service)).map((record) => ({
          id: headerText(record, "event-id") ?? "",
          topic: record.topic,
          key: record.key?.toString() ?? null,
          headers: {},
          payload: record.value ?? Buffer.alloc(0),
        })),
      refuse: async (message) => ({ ...message, payload: Buffer.alloc(2 << 20) }),
      stall: () => kafka.pause(),
      resume: async () => kafka.resume(),
      loseAnswerToCommit: async () => {
        proxy.decide = ({ name }) => {
          if (name !== "EndTxn") return { kind: "pass" };
          proxy.decide = () => ({ kind: "pass" });
          return { kind: "lose-answer", reset: true };
        };
      },
      close: async () => {},
    };
  },
};

for (const check of applicable(transactionsContract, harness))
  test(`Kafka: ${check.rule}`, { timeout: 30_000 }, () => check.run(harness));
