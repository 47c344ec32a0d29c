import { Admin, type AdminOptions } from "@platformatic/kafka";
import { until } from "./until.ts";

export type TopicOptions = {
  readonly partitions?: number;
  readonly replicas?: number;
  readonly config?: Readonly<Record<string, string | number>>;
};

/** Runs one piece of administration on a connection of its own. */
export async function withAdmin<T>(
  brokers: string,
  work: (admin: Admin) => Promise<T>,
  options: Partial<AdminOptions> = {},
): Promise<T> {
  const admin = new Admin({
    clientId: "test-admin",
    bootstrapBrokers: brokers.split(","),
    retries: 10,
    retryDelay: 100,
    ...options,
  });
  try {
    return await work(admin);
  } finally {
    await admin.close();
  }
}

/** Returns when every partition has a leader. */
export async function createTopic(admin: Admin, name: string, options: TopicOptions = {}): Promise<void> {
  const { partitions = 1, replicas = 1, config = {} } = options;
  const configs = Object.entries(config).map(([key, value]) => ({ name: key, value: String(value) }));
  await admin.createTopics({ topics: [name], partitions, replicas, configs });
  await haveLeaders(admin, name, partitions);
}

/** Returns when every partition, old and new, has a leader. */
export async function addPartitions(admin: Admin, name: string, partitions: number): Promise<void> {
  await admin.createPartitions({ topics: [{ name, count: partitions }] });
  await haveLeaders(admin, name, partitions);
}

async function haveLeaders(admin: Admin, name: string, partitions: number): Promise<void> {
  await until(`topic ${name} has its leaders`, async () => {
    const { topics } = await admin.metadata({ topics: [name], forceUpdate: true });
    const known = topics.get(name)?.partitions ?? [];
    return known.length === partitions && known.every(({ leader }) => leader >= 0);
  });
}

/** Returns when the topic is not listed any more. */
export async function deleteTopic(admin: Admin, name: string): Promise<void> {
  await admin.deleteTopics({ topics: [name] });
  await until(
    `topic ${name} is gone`,
    async () => !(await admin.listTopics({ includeInternals: true })).includes(name),
  );
}
