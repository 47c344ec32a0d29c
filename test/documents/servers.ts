import { Redis } from "ioredis";
import { startDynamoDb } from "../servers/dynamodb.ts";
import { startElasticMq } from "../servers/elasticmq.ts";
import { startHttpReceiver } from "../servers/http-receiver.ts";
import { startKafka } from "../servers/kafka.ts";
import { startKurrentDb } from "../servers/kurrentdb.ts";
import { startNats } from "../servers/nats.ts";
import { startPostgres } from "../servers/postgres.ts";
import { startRabbit } from "../servers/rabbitmq.ts";
import { type RedisServer, startRedis } from "../servers/redis.ts";

/** The private servers behind the host names of the pages. Each is started by the first page that names it. */
export class Servers implements AsyncDisposable {
  readonly #started = new AsyncDisposableStack();

  // With fsync, as on a server that `doctor` likes: it is quick in memory.
  readonly postgres = this.#once(() => startPostgres({ version: 18, flags: ["-c", "fsync=on"] }));
  readonly kafka = this.#once(() => startKafka());
  readonly redis = this.#once(startRedisWithLogin);
  readonly rabbit = this.#once(() => startRabbit());
  readonly nats = this.#once(() => startNats());
  readonly sqs = this.#once(() => startElasticMq());
  readonly receiver = this.#once(() => startHttpReceiver());
  readonly dynamodb = this.#once(() => startDynamoDb());
  readonly kurrentdb = this.#once(() => startKurrentDb());

  #once<Server extends AsyncDisposable>(start: () => Promise<Server>): () => Promise<Server> {
    let started: Promise<Server> | undefined;
    return () => {
      started ??= start().then((server) => this.#started.use(server));
      return started;
    };
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#started.disposeAsync();
  }
}

async function startRedisWithLogin(): Promise<RedisServer> {
  const server = await startRedis(["--maxmemory-policy", "noeviction"]);
  const redis = new Redis(server.url);
  await redis.call("ACL", "SETUSER", "relay", "on", ">secret", "~*", "&*", "+@all");
  redis.disconnect();
  return server;
}

type Address = (servers: Servers) => Promise<string>;

const ADDRESSES: readonly (readonly [name: RegExp, address: Address])[] = [
  [/(?<=@)db(?=\/)/g, async (it) => `127.0.0.1:${(await it.postgres()).port}`],
  [/Host=db;Port=5432/g, async (it) => `Host=127.0.0.1;Port=${(await it.postgres()).port}`],
  [/\bkafka-[12]:9092/g, async (it) => (await it.kafka()).brokers],
  [/\bredis:6379/g, async (it) => `127.0.0.1:${(await it.redis()).port}`],
  [/relay:secret@rabbit-1,rabbit-2(?=\/)/g, async (it) => `guest:guest@127.0.0.1:${(await it.rabbit()).port}`],
  [/(?<=RabbitMq__HostName=)rabbit-1/g, async () => "127.0.0.1"],
  [/(?<=RabbitMq__Port=)5672/g, async (it) => String((await it.rabbit()).port)],
  [/\bnats-[12]:4222/g, async (it) => `127.0.0.1:${(await it.nats()).port}`],
  [
    /sqs:\/\/eu-central-1\/orders\.fifo/g,
    async (it) => `sqs://eu-central-1/orders.fifo?endpoint=${(await it.sqs()).endpoint}`,
  ],
  [/https:\/\/(?:hooks|payroll)\.example\.org/g, async (it) => (await it.receiver()).origin],
  [/http:\/\/localhost:8000/g, async (it) => (await it.dynamodb()).endpoint],
  [/kurrentdb:\/\/admin:changeit@kurrentdb:2113\?tls=true/g, async (it) => (await it.kurrentdb()).url],
];

/** The text of a page with the addresses of the private servers instead of those on the page. */
export async function withAddresses(text: string, servers: Servers, port: string): Promise<string> {
  let result = text.replaceAll(/(?:127\.0\.0\.1|localhost):3012\b/g, `127.0.0.1:${port}`);
  for (const [name, address] of ADDRESSES) {
    if (result.search(name) < 0) continue;
    const there = await address(servers);
    result = result.replaceAll(name, () => there);
  }
  return result;
}
