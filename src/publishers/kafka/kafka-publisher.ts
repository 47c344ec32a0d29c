import { withinTime } from "../../core/clock.ts";
import { RelayError } from "../../core/errors.ts";
import type { Message } from "../../core/event.ts";
import { LinkPool } from "../../core/link-pool.ts";
import type { Obstacle, Publisher, Report } from "../../ports/publisher.ts";
import { apiOf, destroyClient, explained, loadKafka, openClient } from "./kafka-client.ts";
import { BatchLimits, type KafkaPublisherOptions, type KafkaSettings, kafkaSettings } from "./kafka-config.ts";
import { Delivery } from "./kafka-delivery.ts";
import { connectionReason } from "./kafka-errors.ts";
import { KafkaLink } from "./kafka-link.ts";
import { Topics } from "./kafka-topics.ts";
import { kafkaTransactions } from "./kafka-transactions.ts";

export type { KafkaCompression, KafkaPublisherOptions, KafkaSasl, KafkaTls } from "./kafka-config.ts";

/** Publishes to the topics of a Kafka cluster. Connects with the first event. */
export function kafkaPublisher(options: KafkaPublisherOptions): Publisher {
  const settings = kafkaSettings(options);
  const plain = new PlainDelivery(settings);
  const transactions = settings.delivery === "exactly-once" ? kafkaTransactions(settings) : null;
  return {
    name: settings.name,
    capabilities: { keyOrderInBatch: true, deduplicates: false, attributePrefix: "ce_" },
    ...(transactions === null ? {} : { transactions }),
    publish: (batch, report, signal) => plain.publish(batch, report, signal),
    examine: (signal) => examineKafka(settings, signal),
    async close() {
      await Promise.all([plain.close(), transactions?.close()]);
    },
  };
}

/** At-least-once delivery: each running publish has its own idempotent producer. */
class PlainDelivery {
  readonly #settings: KafkaSettings;
  readonly #limits = new BatchLimits();
  #parts: Promise<{ readonly topics: Topics; readonly pool: LinkPool<KafkaLink> }> | null = null;
  #publishes = 0;

  constructor(settings: KafkaSettings) {
    this.#settings = settings;
  }

  async publish(batch: readonly Message[], report: Report, signal: AbortSignal): Promise<void> {
    if (batch.length === 0) return;
    this.#parts ??= this.#open();
    const { topics, pool } = await this.#parts;
    const link = await pool.take(signal);
    if (link === null) throw givenUp(this.#settings.name);
    const { promise: aborted, reject } = Promise.withResolvers<never>();
    aborted.catch(() => {});
    let destroyed: Promise<void> | undefined;
    let isOver = false;
    const abort = () => {
      isOver = true;
      destroyed = link.destroy();
      reject(givenUp(this.#settings.name));
    };
    signal.addEventListener("abort", abort, { once: true });
    const context = { settings: this.#settings, topics, limits: this.#limits };
    const reportWhileOpen: Report = (index, outcome) => {
      if (!isOver) report(index, outcome);
    };
    const delivery = new Delivery(context, link, reportWhileOpen, { signal, spread: this.#publishes++ });
    try {
      await Promise.race([delivery.run(batch), aborted]);
    } finally {
      isOver = true;
      signal.removeEventListener("abort", abort);
      // An aborted publish must not arrive later, so wait until its connections are closed.
      await destroyed;
      pool.giveBack(link);
    }
  }

  async close(): Promise<void> {
    const parts = await this.#parts?.catch(() => null);
    await parts?.pool.close();
  }

  async #open() {
    const kafka = await loadKafka();
    const topics = new Topics(kafka, this.#settings);
    return { topics, pool: new LinkPool(() => new KafkaLink(kafka, this.#settings, topics)) };
  }
}

function givenUp(name: string): RelayError {
  return new RelayError("PUBLISH_UNKNOWN", `the publish to "${name}" was given up.`);
}

/** Logs in at one of the brokers and requests its API versions. */
async function examineKafka(settings: KafkaSettings, signal: AbortSignal): Promise<readonly Obstacle[]> {
  const kafka = await loadKafka();
  const client = openClient(kafka, settings);
  // The connection timeout of each broker, and one request.
  const timeoutMs = settings.connectTimeoutMs * settings.brokers.length + settings.requestTimeoutMs;
  try {
    await withinTime(apiOf(kafka, client, "Produce"), timeoutMs, signal, () => new Error("the request timed out"));
    return [];
  } catch (error) {
    return [{ severity: "error", reason: connectionReason(settings, explained(client, error)) }];
  } finally {
    await destroyClient(client);
  }
}
