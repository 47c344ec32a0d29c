import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { ListOffsetTimestamps } from "@platformatic/kafka";
import { type KafkaServer, startKafka } from "../../servers/kafka.ts";
import { createTopic, withAdmin } from "../../servers/kafka-admin.ts";
import { startKafkaCluster } from "../../servers/kafka-cluster.ts";
import type { KafkaProcess } from "../../servers/kafka-process.ts";
import { type Decide, type KafkaProxy, startKafkaProxy } from "../../servers/kafka-proxy.ts";
import { TransactionWatch } from "../../servers/kafka-proxy-watch.ts";
import { until } from "../../servers/until.ts";

/** One broker or three, each behind a proxy of its own; what judges goes past the proxies. */
export interface KafkaStand extends AsyncDisposable {
  /** Through the proxies. */
  readonly brokers: readonly string[];
  readonly directBrokers: string;
  readonly nodes: readonly KafkaProcess[];
  readonly watch: TransactionWatch;
  /** Requests that are kept back at present. */
  readonly heldCount: number;
  /** Asked for every request of a transaction from now on. */
  mistreat(decide: Decide): void;
  /** Keeps the next commit that comes over one of these connections back for so long. Tells whether there was one. */
  holdCommit(clientPorts: ReadonlySet<number>, ms: number): Promise<boolean>;
  /** Every client loses its connections. */
  cut(): void;
  createTopic(name: string, partitions: number): Promise<void>;
  /** Returns when every partition has all of its copies again. */
  healthy(): Promise<void>;
  /** Returns when no transaction is open in these topics: a reader of committed records then sees all there is. */
  settled(topics: readonly string[], timeoutMs: number): Promise<void>;
}

const run = promisify(execFile);
const COMMIT_WAIT_MS = 1_000;

/** A transaction that nobody ends any more is looked for every second instead of every ten. Topics are made by hand. */
const PROPERTIES = {
  "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1_000,
  "auto.create.topics.enable": false,
};

export async function startKafkaStand(count: 1 | 3): Promise<KafkaStand> {
  await using started = new AsyncDisposableStack();
  const watch = new TransactionWatch();
  const proxies: KafkaProxy[] = [];
  let usual: Decide = () => ({ kind: "pass" });
  const advertise = async (targetPort: number) => {
    const proxy = started.use(await startKafkaProxy({ targetPort, watch }));
    proxies.push(proxy);
    return proxy.port;
  };
  const { brokers, directBrokers, nodes } = await startNodes(count, advertise, started);
  const owned = started.move();
  return {
    brokers: brokers.split(","),
    directBrokers,
    nodes,
    watch,
    get heldCount() {
      return proxies.reduce((sum, proxy) => sum + proxy.heldCount, 0);
    },
    mistreat(decide) {
      usual = decide;
      for (const proxy of proxies) proxy.decide = decide;
    },
    async holdCommit(clientPorts, ms) {
      let isHeld = false;
      const trap: Decide = (request, port) => {
        if (isHeld || request.name !== "EndTxn" || !clientPorts.has(port)) return usual(request, port);
        isHeld = true;
        return { kind: "hold", ms, reset: false };
      };
      for (const proxy of proxies) proxy.decide = trap;
      await until("a commit is kept back", () => isHeld, COMMIT_WAIT_MS).catch(() => {});
      for (const proxy of proxies) proxy.decide = usual;
      return isHeld;
    },
    cut() {
      for (const proxy of proxies) proxy.cut();
    },
    createTopic: (name, partitions) =>
      withAdmin(directBrokers, (admin) => createTopic(admin, name, { partitions, replicas: count })),
    healthy: () => allCopiesThere(directBrokers, count),
    settled: (topics, timeoutMs) => noTransactionOpen(directBrokers, topics, timeoutMs),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

type Nodes = Pick<KafkaServer, "brokers" | "directBrokers"> & { readonly nodes: readonly KafkaProcess[] };

async function startNodes(
  count: 1 | 3,
  advertise: (port: number) => Promise<number>,
  started: AsyncDisposableStack,
): Promise<Nodes> {
  const options = { advertise, properties: PROPERTIES };
  if (count === 1) {
    const kafka = started.use(await startKafka(options));
    return { brokers: kafka.brokers, directBrokers: kafka.directBrokers, nodes: [kafka] };
  }
  const { brokers, directBrokers, node } = started.use(await startKafkaCluster(options));
  return { brokers, directBrokers, nodes: [node(1), node(2), node(3)] };
}

type Metadata = {
  readonly topics: readonly { readonly partitions: readonly { readonly isrs: readonly unknown[] }[] }[];
};

/** By kcat: the relay's client leaves out internal topics, the transactions' own among them. */
async function allCopiesThere(brokers: string, copies: number): Promise<void> {
  await until(
    "all partitions have all of their copies",
    async () => {
      const { stdout } = await run("kcat", ["-L", "-J", "-b", brokers], { timeout: 10_000 }).catch(() => ({
        stdout: "",
      }));
      if (stdout === "") return false;
      const { topics } = JSON.parse(stdout) as Metadata;
      return topics.every(({ partitions }) => partitions.every(({ isrs }) => isrs.length >= copies));
    },
    60_000,
  );
}

/** Returns when no transaction is open in these topics. */
export async function noTransactionOpen(brokers: string, names: readonly string[], timeoutMs: number): Promise<void> {
  await withAdmin(brokers, async (admin) => {
    const { topics } = await admin.metadata({ topics: [...names], forceUpdate: true });
    const wanted = [...topics].map(([name, { partitionsCount }]) => ({
      name,
      partitions: Array.from({ length: partitionsCount }, (_, partitionIndex) => ({
        partitionIndex,
        timestamp: ListOffsetTimestamps.LATEST,
      })),
    }));
    const ends = async (isolationLevel: 0 | 1) => {
      const listed = await admin.listOffsets({ topics: wanted, isolationLevel });
      return listed.flatMap(({ name, partitions }) =>
        partitions.map(({ partitionIndex, offset }) => `${name} ${partitionIndex} ${offset}`),
      );
    };
    await until(
      "no transaction is open any more",
      async () => {
        const [all, committed] = [await ends(0), await ends(1)];
        return all.toSorted().join() === committed.toSorted().join();
      },
      timeoutMs,
    );
  });
}
