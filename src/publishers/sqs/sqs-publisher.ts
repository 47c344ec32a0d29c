import type { SQSClient } from "@aws-sdk/client-sqs";
import { orAborted } from "../../core/clock.ts";
import { RelayError } from "../../core/errors.ts";
import type { Obstacle, Publisher } from "../../ports/publisher.ts";
import { loadSqs, openClient, type Sqs } from "./sqs-client.ts";
import { type SqsPublisherOptions, type SqsSettings, sqsSettings } from "./sqs-config.ts";
import { SqsDelivery } from "./sqs-delivery.ts";
import type { SqsEntry } from "./sqs-entry.ts";
import { isAnswer, requestFailure } from "./sqs-errors.ts";

export type { SqsPublisherOptions } from "./sqs-config.ts";

/** Publishes to one queue of Amazon SQS, standard or FIFO. Connects with the first event. */
export function sqsPublisher(options: SqsPublisherOptions): Publisher {
  const publishing = new SqsPublishing(sqsSettings(options));
  return {
    name: publishing.settings.name,
    capabilities: { keyOrderInBatch: true, deduplicates: publishing.settings.isFifo, timesRequests: true },
    publish: (...args) => publishing.publish(...args),
    examine: (signal) => publishing.examine(signal),
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

  async publish(...[batch, report, signal, timer]: Parameters<Publisher["publish"]>): Promise<void> {
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
    const send = async (entries: readonly (SqsEntry & { readonly index: number })[]) => {
      const command = new sqs.SendMessageBatchCommand({ QueueUrl: url, Entries: entries.map(batchEntry) });
      const answered = timer?.();
      try {
        const answer = await client.send(command, { abortSignal: signal });
        answered?.(true);
        return answer;
      } catch (error) {
        answered?.(isAnswer(error));
        throw error;
      }
    };
    const delivery = new SqsDelivery({ settings: this.settings, report, send }, batch);
    await orAborted(delivery.run(), signal, () => {
      delivery.giveUp();
      return this.#givenUp();
    });
  }

  /** Checks that the queue exists. A missing permission to send shows only with the first event. */
  async examine(signal: AbortSignal): Promise<readonly Obstacle[]> {
    const sqs = await loadSqs();
    this.#client ??= openClient(sqs, this.settings);
    try {
      await this.#url(sqs, this.#client, signal);
      return [];
    } catch (error) {
      const failed = requestFailure(this.settings, error);
      return "reason" in failed ? [{ severity: "error", reason: failed.reason }] : [];
    }
  }

  close(): void {
    this.#client?.destroy();
  }

  /** A queue's URL never changes; a queue that was not found is looked up again. */
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
