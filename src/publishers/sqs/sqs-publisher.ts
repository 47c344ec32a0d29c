import type { SQSClient } from "@aws-sdk/client-sqs";
import { RelayError } from "../../core/errors.ts";
import type { Message } from "../../core/event.ts";
import type { Publisher, Report } from "../../ports/publisher.ts";
import { loadSqs, openClient, type Sqs } from "./sqs-client.ts";
import { type SqsPublisherOptions, type SqsSettings, sqsSettings } from "./sqs-config.ts";
import { SqsDelivery } from "./sqs-delivery.ts";
import type { SqsEntry } from "./sqs-entry.ts";
import { requestFailure } from "./sqs-errors.ts";

export type { SqsPublisherOptions } from "./sqs-config.ts";

/** Delivers to one queue of Amazon SQS, standard or FIFO. Connects with the first event. */
export function sqsPublisher(options: SqsPublisherOptions): Publisher {
  const publishing = new SqsPublishing(sqsSettings(options));
  return {
    name: publishing.settings.name,
    capabilities: { keyOrderInBatch: true, deduplicates: publishing.settings.isFifo },
    publish: (batch, report, signal) => publishing.publish(batch, report, signal),
    close: async () => publishing.close(),
  };
}

class SqsPublishing {
  readonly settings: SqsSettings;
  #client: SQSClient | null = null;
  #queueUrl: string | null = null;

  constructor(settings: SqsSettings) {
    this.settings = settings;
  }

  async publish(batch: readonly Message[], report: Report, signal: AbortSignal): Promise<void> {
    if (batch.length === 0) return;
    const sqs = await loadSqs();
    this.#client ??= openClient(sqs, this.settings);
    const url = await this.#url(sqs, this.#client, signal).catch((error: unknown) => {
      if (signal.aborted) throw this.#givenUp();
      const failed = requestFailure(this.settings, error);
      for (const index of batch.keys()) report(index, failed);
      return null;
    });
    if (url === null) return;
    if (signal.aborted) throw this.#givenUp();
    const client = this.#client;
    const send = (entries: readonly (SqsEntry & { readonly index: number })[]) =>
      client.send(new sqs.SendMessageBatchCommand({ QueueUrl: url, Entries: entries.map(batchEntry) }), {
        abortSignal: signal,
      });
    await this.#run(new SqsDelivery({ settings: this.settings, report, send }, batch), signal);
  }

  close(): void {
    this.#client?.destroy();
  }

  async #run(delivery: SqsDelivery, signal: AbortSignal): Promise<void> {
    const { promise: aborted, reject } = Promise.withResolvers<never>();
    aborted.catch(() => {});
    const abort = () => {
      delivery.giveUp();
      reject(this.#givenUp());
    };
    signal.addEventListener("abort", abort, { once: true });
    try {
      await Promise.race([delivery.run(), aborted]);
    } finally {
      signal.removeEventListener("abort", abort);
    }
  }

  /** A queue's address never changes; one that was not found is asked for again. */
  async #url(sqs: Sqs, client: SQSClient, signal: AbortSignal): Promise<string> {
    if (this.#queueUrl !== null) return this.#queueUrl;
    const { account, queue } = this.settings;
    const owner = account === null ? {} : { QueueOwnerAWSAccountId: account };
    const asked = new sqs.GetQueueUrlCommand({ QueueName: queue, ...owner });
    const { QueueUrl } = await client.send(asked, { abortSignal: signal });
    this.#queueUrl = QueueUrl!;
    return this.#queueUrl;
  }

  #givenUp(): RelayError {
    return new RelayError("PUBLISH_UNKNOWN", `the publish to "${this.settings.name}" was given up.`);
  }
}

function batchEntry({ attributes, body, dedupeId, groupId, index }: SqsEntry & { readonly index: number }) {
  return {
    Id: String(index),
    MessageBody: body,
    MessageAttributes: attributes,
    ...(groupId === null ? {} : { MessageGroupId: groupId }),
    ...(dedupeId === null ? {} : { MessageDeduplicationId: dedupeId }),
  };
}
