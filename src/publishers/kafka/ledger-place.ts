import { anyConnection, apiOf, connectionTo, type Kafka, type KafkaClient } from "./kafka-client.ts";
import type { BrokerAddress, KafkaSettings } from "./kafka-config.ts";
import { CODE } from "./kafka-error-codes.ts";
import { responseIn } from "./kafka-errors.ts";

/** Connections of their own to the cluster that the settings name. */
export interface KafkaAccess {
  readonly kafka: Kafka;
  readonly client: KafkaClient;
  readonly settings: KafkaSettings;
}

interface LedgerPartition {
  /** Null while it has none. */
  readonly leader: BrokerAddress | null;
  readonly replicas: number;
}

/** The ledger topic as the cluster describes it just now. */
export interface LedgerPlace {
  /** 0, or why there is nothing to describe. */
  readonly code: number;
  readonly topicId: string;
  readonly partitions: readonly LedgerPartition[];
  /** What this user may do there, as a set of bits; null when the broker does not say. */
  readonly rights: number | null;
  /** Where topics are created; null when the cluster has just none. */
  readonly controller: BrokerAddress | null;
}

interface Metadata {
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

const RIGHTS_NOT_TOLD = -2_147_483_648;

/** Asks anew each time. Never lets the broker create the topic: one made by itself forgets. */
export async function findLedger(access: KafkaAccess): Promise<LedgerPlace> {
  const { kafka, client, settings } = access;
  const ask = async (attempt: number): Promise<unknown> => {
    const connection = await anyConnection(kafka, client, attempt);
    const api = await apiOf(kafka, client, "Metadata");
    return api.async(connection, [settings.ledger.topic], false, true).catch(answerIn);
  };
  // A broker that hangs is no reason to give up, as long as there are others.
  return placeIn((await ask(0).catch(() => ask(1))) as Metadata);
}

/** Null: whichever answers. */
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

/** The client throws an answer in which anything is wrong, although the rest of it is right. */
function answerIn(error: unknown): unknown {
  const answer = responseIn(error);
  if (answer === undefined) throw error;
  return answer;
}

function placeIn({ brokers, controllerId, topics }: Metadata): LedgerPlace {
  const addressOf = (nodeId: number): BrokerAddress | null => {
    const broker = brokers.find((it) => it.nodeId === nodeId);
    return broker === undefined ? null : { host: broker.host, port: broker.port };
  };
  const topic = topics[0];
  const partitions: LedgerPartition[] = [];
  for (const { partitionIndex, leaderId, replicaNodes } of topic?.partitions ?? [])
    partitions[partitionIndex] = { leader: addressOf(leaderId), replicas: replicaNodes.length };
  const rights = topic?.topicAuthorizedOperations ?? RIGHTS_NOT_TOLD;
  return {
    code: topic?.errorCode ?? CODE.UNKNOWN_TOPIC_OR_PARTITION,
    topicId: topic?.topicId ?? "",
    partitions,
    rights: rights === RIGHTS_NOT_TOLD ? null : rights,
    controller: addressOf(controllerId),
  };
}
