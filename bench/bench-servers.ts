import { type KafkaServer, startKafka } from "../test/servers/kafka.ts";
import { type PostgresServer, startPostgres } from "../test/servers/postgres.ts";
import { compileRelay, prepareDatabase } from "./relay-run.ts";

export interface BenchServers extends AsyncDisposable {
  readonly postgres: PostgresServer;
  readonly kafka: KafkaServer;
  /** Deleted when its measurement is over, so that records do not pile up on the disk. */
  freshTopic(): Promise<AsyncDisposable & { readonly name: string }>;
}

const PARTITIONS = 8;
const SETTINGS = [
  "fsync=on",
  "shared_preload_libraries=pg_stat_statements",
  "shared_buffers=512MB",
  "max_wal_size=4GB",
];

/** Kafka's default again: nobody kills the broker here, and on a busy machine it must not count as dead. */
const PATIENCE = { "broker.session.timeout.ms": 9_000, "broker.heartbeat.interval.ms": 2_000 };

/** Private servers on the disk, and the relay compiled and allowed to use them. */
export async function startBenchServers(): Promise<BenchServers> {
  await using started = new AsyncDisposableStack();
  const flags = SETTINGS.flatMap((setting) => ["-c", setting]);
  const postgres = started.use(await startPostgres({ version: 18, onDisk: true, flags }));
  const kafka = started.use(await startKafka({ onDisk: true, fast: true, properties: PATIENCE }));
  await compileRelay();
  await prepareDatabase(postgres);
  const owned = started.move();
  let topics = 0;
  return {
    postgres,
    kafka,
    async freshTopic() {
      topics += 1;
      const name = `bench-${topics}`;
      await kafka.createTopic(name, { partitions: PARTITIONS });
      return { name, [Symbol.asyncDispose]: () => kafka.deleteTopic(name) };
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
