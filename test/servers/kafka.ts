import { freePort } from "./free-port.ts";
import { addPartitions, createTopic, deleteTopic, type TopicOptions, withAdmin } from "./kafka-admin.ts";
import { type KafkaProcess, spawnKafka } from "./kafka-process.ts";
import type { KafkaProperties } from "./kafka-templates.ts";

export type KafkaOptions = {
  /** More of server.properties, for instance `{ "auto.create.topics.enable": false }`. They win over the defaults. */
  readonly properties?: KafkaProperties;
  /**
   * Told the port that the broker listens on, returns the one that clients are told: that of a proxy in front of it,
   * for instance. The broker's own connections, administration and readers use another listener and never the proxy.
   */
  readonly advertise?: (port: number) => number | Promise<number>;
  /** The address that clients connect to. Default: 127.0.0.1. Everything else stays there. */
  readonly host?: string;
  /** Keep the data on disk, as a benchmark wants. The default is memory, where there is enough. */
  readonly onDisk?: boolean;
  /** Keep everything in this folder instead, for instance on a small disk. */
  readonly within?: string;
  /** A heap of a gigabyte and the optimizing compiler, as a benchmark wants. The default is small and starts fast. */
  readonly fast?: boolean;
};

/** A private Kafka on 127.0.0.1: one node that is broker and controller, without encryption or authentication. */
export type KafkaServer = KafkaProcess & {
  /** What clients are given: "127.0.0.1:port", through the proxy if there is one. */
  readonly brokers: string;
  /** The same broker past any proxy, for readers that judge. */
  readonly directBrokers: string;
  /** Returns when every partition has a leader. */
  createTopic(name: string, options?: TopicOptions): Promise<void>;
  /** So many in all. */
  addPartitions(name: string, partitions: number): Promise<void>;
  deleteTopic(name: string): Promise<void>;
};

/** One node needs one copy of everything; a group waits for no latecomers. */
export const singleNodeProperties: KafkaProperties = {
  "offsets.topic.replication.factor": 1,
  "offsets.topic.num.partitions": 1,
  "transaction.state.log.replication.factor": 1,
  "transaction.state.log.min.isr": 1,
  "transaction.state.log.num.partitions": 5,
  "share.coordinator.state.topic.replication.factor": 1,
  "share.coordinator.state.topic.min.isr": 1,
  "group.initial.rebalance.delay.ms": 0,
  // A node that was killed may come back only after this, because until then it counts as alive.
  "broker.session.timeout.ms": 1_000,
  "broker.heartbeat.interval.ms": 200,
};

export async function startKafka(options: KafkaOptions = {}): Promise<KafkaServer> {
  const [port, innerPort, controllerPort] = [await freePort(), await freePort(), await freePort()];
  const host = options.host ?? "127.0.0.1";
  const advertisedPort = (await options.advertise?.(port)) ?? port;
  const node = await spawnKafka({
    nodeId: 1,
    properties: {
      "process.roles": "broker,controller",
      "controller.quorum.voters": `1@127.0.0.1:${controllerPort}`,
      listeners: `CLIENT://${host}:${port},INNER://127.0.0.1:${innerPort},CONTROLLER://127.0.0.1:${controllerPort}`,
      "advertised.listeners": `CLIENT://${host}:${advertisedPort},INNER://127.0.0.1:${innerPort}`,
      "listener.security.protocol.map": "CLIENT:PLAINTEXT,INNER:PLAINTEXT,CONTROLLER:PLAINTEXT",
      "inter.broker.listener.name": "INNER",
      "controller.listener.names": "CONTROLLER",
      ...singleNodeProperties,
      ...options.properties,
    },
    ...(options.onDisk === undefined ? {} : { onDisk: options.onDisk }),
    ...(options.fast === undefined ? {} : { fast: options.fast }),
    ...(options.within === undefined ? {} : { within: options.within }),
  });
  const directBrokers = `127.0.0.1:${innerPort}`;
  try {
    await node.ready();
  } catch (error) {
    await node[Symbol.asyncDispose]();
    throw error;
  }
  return Object.assign(node, {
    brokers: `${host}:${advertisedPort}`,
    directBrokers,
    createTopic: (name: string, topic?: TopicOptions) =>
      withAdmin(directBrokers, (admin) => createTopic(admin, name, topic)),
    addPartitions: (name: string, partitions: number) =>
      withAdmin(directBrokers, (admin) => addPartitions(admin, name, partitions)),
    deleteTopic: (name: string) => withAdmin(directBrokers, (admin) => deleteTopic(admin, name)),
  });
}
