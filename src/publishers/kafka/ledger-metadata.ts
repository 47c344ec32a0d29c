import { anyConnection, apiOf, connectionTo, type Kafka, type KafkaClient } from "./kafka-client.ts";
import type { BrokerAddress, KafkaSettings } from "./kafka-config.ts";
import { CODE } from "./kafka-error-codes.ts";
import { bothFailures, responseIn } from "./kafka-errors.ts";

/** A client with its own connections to the configured cluster. */
export interface KafkaAccess {
  readonly kafka: Kafka;
  readonly client: KafkaClient;
  readonly settings: KafkaSettings;
}

interface LedgerPartition {
  /** Null while the partition has no leader. */
  readonly leader: BrokerAddress | null;
  readonly replicas: number;
}

/** The current state of the ledger topic in the cluster. */
export interface LedgerMetadata {
  /** 0, or the error code of the lookup. */
  readonly code: number;
  readonly topicId: string;
  readonly partitions: readonly LedgerPartition[];
  /** The operations allowed to this user, as a bit set; null when the broker does not report them. */
  readonly rights: number | null;
  /** The broker that creates topics; null while the cluster has no controller. */
  readonly controller: BrokerAddress | null;
}

interface MetadataAnswer {
  readonly brokers: readonly (BrokerAddress & { readonly nodeId: number })[];
  readonly controllerId: number;
  readonly topics: readonly {
    readonly errorCode: number;
    readonly topicId?: string;
    readonly topicAuthorizedOperations?: number;
    readonly partitions: readonly {
      readonly partitionIndex: number;
      readonly leaderId: number;
      readonly replicaNodes: readonly number[];
    }[];
  }[];
}

const RIGHTS_UNKNOWN = -2_147_483_648;

/**
 * Always asks a broker. Never lets the broker auto-create the topic: with its default retention, the ledger would lose
 * records.
 */
export async function describeLedger(access: KafkaAccess): Promise<LedgerMetadata> {
  const { kafka, client, settings } = access;
  const ask = async (attempt: number): Promise<unknown> => {
    const connection = await anyConnection(kafka, client, attempt);
    const api = await apiOf(kafka, client, "Metadata");
    return api.async(connection, [settings.ledger.topic], false, true).catch(answerIn);
  };
  // One hanging broker is no reason to fail if another one answers.
  const again = (first: unknown) =>
    ask(1).catch((second: unknown) => {
      throw bothFailures(first, second);
    });
  return metadataFrom((await ask(0).catch(again)) as MetadataAnswer);
}

/** Sends a request to this broker; null: to any broker. */
export async function askBroker<Answer>(
  { kafka, client }: KafkaAccess,
  broker: BrokerAddress | null,
  name: string,
  ...request: readonly unknown[]
): Promise<Answer> {
  const connection = await (broker === null ? anyConnection(kafka, client) : connectionTo(kafka, client, broker));
  const api = await apiOf(kafka, client, name);
  return (await api.async(connection, ...request)) as Answer;
}

/** The client throws when any part of a response has an error, although the rest of it is valid. */
function answerIn(error: unknown): unknown {
  const answer = responseIn(error);
  if (answer === undefined) throw error;
  return answer;
}

function metadataFrom({ brokers, controllerId, topics }: MetadataAnswer): LedgerMetadata {
  const addressOf = (nodeId: number): BrokerAddress | null => {
    const broker = brokers.find((it) => it.nodeId === nodeId);
    return broker === undefined ? null : { host: broker.host, port: broker.port };
  };
  const topic = topics[0];
  const partitions: LedgerPartition[] = [];
  for (const { partitionIndex, leaderId, replicaNodes } of topic?.partitions ?? [])
    partitions[partitionIndex] = { leader: addressOf(leaderId), replicas: replicaNodes.length };
  const rights = topic?.topicAuthorizedOperations ?? RIGHTS_UNKNOWN;
  return {
    code: topic?.errorCode ?? CODE.UNKNOWN_TOPIC_OR_PARTITION,
    topicId: topic?.topicId ?? "",
    partitions,
    rights: rights === RIGHTS_UNKNOWN ? null : rights,
    controller: addressOf(controllerId),
  };
}
