import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Queue, Worker } from "bullmq";
import { Redis } from "ioredis";
import { type RedisServer, startRedis } from "../../../test/servers/redis.ts";
import { until } from "../../../test/servers/until.ts";
import { isRelayError } from "../../core/errors.ts";
import type { Message } from "../../core/event.ts";
import type { Outcome } from "../../core/outcome.ts";
import { bullmqSettings } from "./bullmq-config.ts";
import { connectionReason, outcomeOf } from "./bullmq-errors.ts";
import { faultOf, jobIdOf } from "./bullmq-job.ts";
import { type BullmqEvent, type BullmqPublisherOptions, bullmqPublisher } from "./bullmq-publisher.ts";

const UUID = "0b9c1f8e-6d5a-4c3b-9a2f-1e0d7c6b5a49";
let server: RedisServer;

before(async () => {
  server = await startRedis(["--maxmemory-policy", "noeviction"]);
});

after(() => server[Symbol.asyncDispose]());

function message(id: string, topic: string, payload: Buffer = Buffer.from(id)): Message {
  const event = { id, type: topic, key: "k", payload, headers: {}, correlationId: null, createdAt: null };
  return { event, topic, key: "k", headers: { "event-id": id, tenant: "t" }, payload };
}

async function publishAll(options: Partial<BullmqPublisherOptions>, batch: readonly Message[]): Promise<Outcome[]> {
  const publisher = bullmqPublisher({ hosts: [`127.0.0.1:${server.port}`], ...options });
  const outcomes: Outcome[] = [];
  const report = (index: number, outcome: Outcome) => {
    outcomes[index] = outcome;
  };
  await publisher.publish(batch, report, AbortSignal.timeout(10_000)).finally(() => publisher.close());
  return outcomes;
}

interface Seen {
  readonly id: string | undefined;
  readonly name: string;
  readonly data: BullmqEvent;
}

/** What a worker gets until it has had so many jobs. */
async function work(queue: string, count: number): Promise<Seen[]> {
  const seen: Seen[] = [];
  const connection = { host: "127.0.0.1", port: server.port, maxRetriesPerRequest: null };
  const worker = new Worker<BullmqEvent>(queue, async ({ id, name, data }) => void seen.push({ id, name, data }), {
    connection,
    concurrency: 1,
  });
  worker.on("error", () => {});
  await until(`${count} jobs are done`, () => seen.length >= count);
  await worker.close();
  return seen;
}

test("G2 B6 a worker gets the id, the type, key and headers, and the payload's bytes, in their order", async () => {
  const json = Buffer.from('{"big": 12345678901234567890, "n": 1.0}');
  const bytes = Buffer.from([0, 255, 1]);
  const batch = [message(UUID, "order.placed", json), message("b", "order.placed", bytes)];
  assert.deepEqual(
    (await publishAll({}, batch)).map(({ kind }) => kind),
    ["delivered", "delivered"],
  );
  const [first, second] = await work("order.placed", 2);
  assert.deepEqual([first?.id, first?.name], [UUID, "order.placed"]);
  assert.deepEqual(first?.data, {
    id: UUID,
    type: "order.placed",
    key: "k",
    headers: { "event-id": UUID, tenant: "t" },
    payload: json.toString(),
    encoding: "utf8",
  });
  assert.equal(second?.data.id, "b");
  assert.equal(Buffer.from(second!.data.payload, second!.data.encoding).toString("hex"), bytes.toString("hex"));
});

test("D8 a job that is still there is not added again, done or not; a removed one is", async () => {
  const batch = [message(UUID, "kept")];
  await publishAll({}, batch);
  await publishAll({}, batch);
  await work("kept", 1);
  await publishAll({}, batch);
  const queue = new Queue("kept", { connection: { host: "127.0.0.1", port: server.port } });
  assert.deepEqual([await queue.getWaitingCount(), await queue.getCompletedCount()], [0, 1]);
  await queue.obliterate({ force: true });
  await publishAll({}, batch);
  assert.equal(await queue.getWaitingCount(), 1);
  await queue.close();
});

test("G2 one queue, a prefix, a job's name and the worker's attempts can be given", async () => {
  const options = { queue: "all", prefix: "mine", jobName: "event", attempts: 3, removeOnComplete: 10 };
  await publishAll(options, [message("1", "a:b"), message("2", "c")]);
  const queue = new Queue("all", { connection: { host: "127.0.0.1", port: server.port }, prefix: "mine" });
  const jobs = await queue.getJobs(["waiting"], 0, -1, true);
  assert.deepEqual(
    jobs.map(({ name, data, opts }) => [name, data.type, opts.attempts, opts.removeOnComplete]),
    [
      ["event", "a:b", 3, 10],
      ["event", "c", 3, 10],
    ],
  );
  await queue.close();
});

test("D3 ids that BullMQ forbids get a form of their own, and no two share one", () => {
  assert.equal(jobIdOf(message(UUID, "t")), UUID);
  const ids = ["7", "a:b", "a%3Ab", "a%b", "a%25b", ""].map((id) => jobIdOf(message(id, "t", Buffer.alloc(0))));
  assert.equal(new Set(ids).size, ids.length);
  for (const id of ids) assert.ok(!id.includes(":") && `${Number.parseInt(id, 10)}` !== id, id);
});

test("F4 a full Redis is the destination's failure, a queue's key of another type the topic's", async () => {
  const redis = new Redis(server.url);
  await redis.config("SET", "maxmemory", "1");
  const [full] = await publishAll({}, [message("1", "full")]);
  await redis.config("SET", "maxmemory", "0");
  await redis.set("bull:taken:wait", "x");
  const [taken, free] = await publishAll({}, [message("1", "taken"), message("2", "free")]);
  redis.disconnect();
  assert.ok(full?.kind === "retry" && full.scope === "destination" && /OOM/.test(full.reason), JSON.stringify(full));
  assert.ok(taken?.kind === "retry" && taken.scope === "topic", JSON.stringify(taken));
  assert.equal(free?.kind, "delivered");
});

test("A20 wrong settings and lost connections are reported by name, without the password", async () => {
  const hosts = ["localhost:1"];
  for (const options of [{ hosts: [] }, { hosts, queue: "a:b" }, { hosts, attempts: 0 }, { hosts, username: "u" }]) {
    assert.throws(
      () => bullmqSettings(options),
      (error) => isRelayError(error, "CONFIG_INVALID"),
    );
  }
  const settings = bullmqSettings({ hosts, password: "canary" });
  assert.equal(connectionReason(settings, new Error("no canary")), "Redis at localhost:1: no ***");
  assert.match(String(faultOf(message("1", "a:b"), settings)), /forbids/);
  assert.equal(outcomeOf("READONLY no", "q").kind, "retry");
  const [down] = await publishAll({ hosts: ["127.0.0.1:1"] }, [message("1", "t")]);
  assert.ok(down?.kind === "retry" && down.scope === "destination" && /127\.0\.0\.1:1/.test(down.reason));
});

test("A17 an examination names a wrong password as a publish does, and a server that would delete jobs", async () => {
  await using _ = {
    redis: new Redis(server.url),
    async [Symbol.asyncDispose]() {
      await this.redis.config("SET", "maxmemory-policy", "noeviction");
      this.redis.disconnect();
    },
  };
  await _.redis.call("ACL", "SETUSER", "relay", "on", ">right", "~*", "+@all");
  const login = { username: "relay", password: "wrong" };
  const [refused] = await publishAll(login, [message("a", "nowhere")]);
  const examined = async (options: Partial<BullmqPublisherOptions>) => {
    const publisher = bullmqPublisher({ hosts: [`127.0.0.1:${server.port}`], ...options });
    return await publisher.examine?.(AbortSignal.timeout(30_000)).finally(() => publisher.close());
  };
  assert.ok(refused?.kind === "retry" && /WRONGPASS/.test(refused.reason), JSON.stringify(refused));
  assert.deepEqual(await examined(login), [{ severity: "error", reason: refused.reason }]);
  await _.redis.config("SET", "maxmemory-policy", "allkeys-lru");
  assert.match((await examined({}))?.[0]?.reason ?? "", /maxmemory-policy is allkeys-lru/);
});
