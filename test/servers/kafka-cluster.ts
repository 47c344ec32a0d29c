import { type Admin, FindCoordinatorKeyTypes } from "@platformatic/kafka";
import { freePort } from "./free-port.ts";
import { createTopic, deleteTopic, type TopicOptions, withAdmin } from "./kafka-admin.ts";
import { type KafkaProcess, spawnKafka } from "./kafka-process.ts";
import type { KafkaProperties } from "./kafka-templates.ts";
import { until } from "./until.ts";

export type KafkaClusterOptions = {
  /** More of server.properties for every node. They win over the defaults. */
  readonly properties?: KafkaProperties;
  /** As of a single broker, node by node. */
  readonly advertise?: (port: number, nodeId: number) => number | Promise<number>;
};

/** Three nodes, each broker and controller: any one of them may be down and everything goes on. */
export type KafkaCluster = AsyncDisposable & {
  /** What clients are given: the addresses of all nodes. */
  readonly brokers: string;
  /** The same past any proxies, for readers that judge. */
  readonly directBrokers: string;
  /** By their ids 1, 2 and 3. Its restart returns when it serves again, which need not mean that it has caught up. */
  node(nodeId: number): KafkaProcess;
  /** Replicas: 3, of which 2 have to be in sync. */
  createTopic(name: string, options?: TopicOptions): Promise<void>;
  deleteTopic(name: string): Promise<void>;
  /** The id of the node that leads the partition now. */
  leaderOf(topic: string, partition?: number): Promise<number>;
  /** The id of the node that coordinates the transactions of this transactional id now. */
  coordinatorOf(transactionalId: string): Promise<number>;
  /** Returns when every partition of the topic has all of its replicas in sync. */
  inSync(topic: string): Promise<void>;
};

type Address = { readonly nodeId: number; readonly port: number; readonly inner: number; readonly controller: number };

const nodeIds = [1, 2, 3];
const clusterProperties: KafkaProperties = {
  "default.replication.factor": 3,
  "min.insync.replicas": 2,
  "offsets.topic.replication.factor": 3,
  "offsets.topic.num.partitions": 3,
  "transaction.state.log.replication.factor": 3,
  "transaction.state.log.min.isr": 2,
  "transaction.state.log.num.partitions": 6,
  "share.coordinator.state.topic.replication.factor": 3,
  "group.initial.rebalance.delay.ms": 0,
  // How long a dead node counts as alive. Longer than for one node alone: three share the processors.
  "broker.session.timeout.ms": 3_000,
  "broker.heartbeat.interval.ms": 500,
};

export async function startKafkaCluster(options: KafkaClusterOptions = {}): Promise<KafkaCluster> {
  await using started = new AsyncDisposableStack();
  const addresses = await Promise.all(nodeIds.map(freeAddress));
  const voters = addresses.map(({ nodeId, controller }) => `${nodeId}@127.0.0.1:${controller}`).join();
  const nodes = new Map<number, KafkaProcess>();
  const told: string[] = [];
  const waits: Promise<void>[] = [];
  for (const address of addresses) {
    const advertisedPort = (await options.advertise?.(address.port, address.nodeId)) ?? address.port;
    told.push(`127.0.0.1:${advertisedPort}`);
    const properties = { ...nodeProperties(address, advertisedPort, voters), ...options.properties };
    const node = started.use(await spawnKafka({ nodeId: address.nodeId, properties }));
    nodes.set(address.nodeId, node);
    waits.push(node.ready());
  }
  await Promise.all(waits);
  const owned = started.move();
  const directBrokers = addresses.map(({ inner }) => `127.0.0.1:${inner}`).join();
  const administer = <T>(work: (admin: Admin) => Promise<T>) => withAdmin(directBrokers, work);
  return {
    brokers: told.join(),
    directBrokers,
    node: (nodeId) => nodes.get(nodeId) ?? fail(nodeId),
    createTopic: (name, topic) => administer((admin) => createTopic(admin, name, { replicas: 3, ...topic })),
    deleteTopic: (name) => administer((admin) => deleteTopic(admin, name)),
    leaderOf: (topic, partition = 0) =>
      administer((admin) =>
        until(`partition ${partition} of ${topic} has a leader`, async () => {
          const leader = (await partitionsOf(admin, topic))[partition]?.leader ?? -1;
          return leader >= 0 && leader;
        }),
      ),
    coordinatorOf: (transactionalId) => administer((admin) => coordinatorOf(admin, transactionalId)),
    inSync: (topic) =>
      administer((admin) =>
        until(`all replicas of ${topic} are in sync`, async () => {
          const partitions = await partitionsOf(admin, topic);
          return partitions.length > 0 && partitions.every(({ isr, replicas }) => isr.length === replicas.length);
        }),
      ).then(() => {}),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function freeAddress(nodeId: number): Promise<Address> {
  const [port, inner, controller] = await Promise.all([freePort(), freePort(), freePort()]);
  return { nodeId, port, inner, controller };
}

function nodeProperties({ port, inner, controller }: Address, advertised: number, voters: string): KafkaProperties {
  return {
    "process.roles": "broker,controller",
    "controller.quorum.voters": voters,
    listeners: `CLIENT://127.0.0.1:${port},INNER://127.0.0.1:${inner},CONTROLLER://127.0.0.1:${controller}`,
    "advertised.listeners": `CLIENT://127.0.0.1:${advertised},INNER://127.0.0.1:${inner}`,
    "listener.security.protocol.map": "CLIENT:PLAINTEXT,INNER:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "INNER",
    "controller.listener.names": "CONTROLLER",
    ...clusterProperties,
  };
}

async function partitionsOf(admin: Admin, topic: string) {
  const { topics } = await admin.metadata({ topics: [topic], forceUpdate: true });
  return topics.get(topic)?.partitions ?? [];
}

async function coordinatorOf(admin: Admin, transactionalId: string): Promise<number> {
  const [found] = await admin.findCoordinator({
    keyType: FindCoordinatorKeyTypes.TRANSACTION,
    keys: [transactionalId],
  });
  if (!found) throw new Error(`nobody coordinates ${transactionalId}`);
  return found.nodeId;
}

function fail(nodeId: number): never {
  throw new Error(`there is no node ${nodeId}: they are ${nodeIds.join(", ")}`);
}
