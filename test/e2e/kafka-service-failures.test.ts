import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { freePort } from "../servers/free-port.ts";
import { type KafkaServer, startKafka } from "../servers/kafka.ts";
import { type KafkaProxy, startKafkaProxy } from "../servers/kafka-proxy.ts";
import { followTopic, type KafkaRecord, readTopic } from "../servers/kafka-reader.ts";
import { startSecureKafka } from "../servers/kafka-secure.ts";
import { type PostgresServer, startPostgres } from "../servers/postgres.ts";
import { until } from "../servers/until.ts";
import { assertOnce, disorderIn, idsOf, problemsOnce, sample } from "./kafka-checks.ts";
import { eventsOf, type KafkaStage, openKafkaStage } from "./kafka-stage.ts";
import { runCommand } from "./service-process.ts";

let postgres: PostgresServer;
let kafka: KafkaServer;
/** In front of `kafka.brokers`, not of `kafka.directBrokers`. */
let proxy: KafkaProxy;
let stages = 0;

before(async () => {
  const advertise = async (port: number) => {
    proxy = await startKafkaProxy({ targetPort: port });
    return proxy.port;
  };
  const properties = { "auto.create.topics.enable": false };
  [postgres, kafka] = await Promise.all([startPostgres({ version: 18 }), startKafka({ properties, advertise })]);
});

after(async () => {
  await kafka?.[Symbol.asyncDispose]();
  await proxy?.[Symbol.asyncDispose]();
  await postgres?.[Symbol.asyncDispose]();
});

async function stage(env: Readonly<Record<string, string>> = {}): Promise<KafkaStage> {
  stages += 1;
  return await openKafkaStage(postgres, `failures_${stages}`, { KAFKA_BROKERS: kafka.directBrokers, ...env });
}

const read = (topic: string): Promise<KafkaRecord[]> => readTopic(kafka.directBrokers, topic);

const numberOf = ({ value }: KafkaRecord): number => (JSON.parse(String(value)) as { number: number }).number;

interface DeadLetter {
  readonly id: string;
  readonly reason: string;
  readonly count: number;
  readonly errors: readonly { readonly at: string; readonly attempt: number; readonly reason: string }[];
}

const deadLetters = ({ sql }: KafkaStage): Promise<DeadLetter[]> =>
  sql<DeadLetter & Record<string, unknown>>(
    `select original_event_id as id, failure_reason as reason, failure_count as count, errors
     from outbox_relay.failed_events order by original_event_id`,
  );

describe("outbox-relay run and events that Kafka does not take", { concurrency: 3 }, () => {
  test("A9 G2: what no retry can cure is dead at once, one byte too many included; the others go, exit 5", async () => {
    await using it = await stage({ SERVICE_NAME: "strict" });
    await kafka.createTopic("narrow", { config: { "max.message.bytes": 1_000 } });
    const texts = Array.from({ length: 10 }, (_, n) => "x".repeat(785 + n));
    const sized = await it.insert(texts.map((text, n) => ({ type: "narrow", key: `k${n}`, payload: `"${text}"` })));
    const names = ["not legal", "straße", "..", "x".repeat(250), "outbox-relay.ledger.strict"];
    const misnamed = await it.insert(names.map((type, n) => ({ type, key: `name-${n}` })));

    // The time is part of the record, and its length must not differ from one to the other.
    await it.sql("update orders.outbox set created_at = '2026-01-01 12:00:00.123456+00'");

    const { code, stderr } = await it.once();
    assert.equal(code, 5, stderr);
    const records = await read("narrow");
    const fitting = records.length;
    assert.ok(fitting > 0 && fitting < texts.length, `${fitting} of ${texts.length} fit`);
    assertOnce(records, sized.slice(0, fitting));
    const dead = await deadLetters(it);
    assert.deepEqual(
      dead.map(({ id }) => id),
      [...sized.slice(fitting), ...misnamed].toSorted(),
    );
    assert.deepEqual(
      dead.filter(({ count }) => count !== 1),
      [],
      "none was tried again",
    );
    const reasons = new Map(dead.map(({ id, reason }) => [id, reason]));
    for (const id of sized.slice(fitting)) assert.match(reasons.get(id)!, /MESSAGE_TOO_LARGE.*max\.message\.bytes/);
    for (const id of misnamed.slice(0, 4)) assert.match(reasons.get(id)!, /topic.*(name|named)/);
    assert.match(reasons.get(misnamed[4]!)!, /the relay's own ledger/);
    assert.match(stderr, new RegExp(`^${fitting} events delivered; ${dead.length} dead letters$`, "m"));

    await using running = await it.run();
    assert.equal((await running.becomes("healthy")).unpublishedEventCount, 0);
    await until("the metric tells", async () => {
      const { body } = await running.get("/metrics");
      return sample(body, "outbox_relay_failed_events") === dead.length;
    });
    assert.equal(await it.pendingCount(), dead.length, "the rows keep their flags");
  });

  test("F2 D5 A2: a replayed head reaches Kafka before what was parked behind it, and everything once", async () => {
    await using it = await stage();
    await kafka.createTopic("mended", { partitions: 3 });
    await using running = await it.run();
    const keys = ["a", "b", "c"];
    const heads = await it.insert(keys.map((key) => ({ type: "not legal", key })));
    const followers = await it.insert([1, 2, 3].flatMap(() => keys.map((key) => ({ type: "mended", key }))));
    await it.waitFor("the heads are dead", async () => (await deadLetters(it)).length === heads.length);
    assert.deepEqual(await read("mended"), [], "the others wait behind them");
    await it.sql("update orders.outbox set event_type = 'mended' where id = any($1)", [heads]);
    const { code, stdout, stderr } = await runCommand(["dlq", "replay", "--type", "not*", "--yes"], it.env);
    assert.deepEqual([code, stdout.split(" ")[0]], [0, "3"], stderr);
    await it.waitFor("all are there", async () => (await read("mended")).length === heads.length + followers.length);
    const records = await read("mended");
    assertOnce(records, [...heads, ...followers]);
    const placeOf = new Map([...heads, ...followers].map((id, place) => [id, place]));
    const written = (record: KafkaRecord) => placeOf.get(idsOf([record])[0]!) ?? -1;
    assert.deepEqual(disorderIn(records, written), []);
    await running.becomes("healthy");
  });

  test("G2 A18: an unknown topic is waited for, visibly, and delivered to as soon as it is there", async () => {
    await using it = await stage();
    await kafka.createTopic("waiting.known");
    const known = await it.insert(eventsOf("waiting.known", 5));
    const unknown = await it.insert(eventsOf("waiting.unknown", 5));
    const first = await it.once();
    assert.equal(first.code, 5, first.stderr);
    assert.match(first.stderr, /^5 events delivered; events for waiting\.unknown wait for the topic$/m);
    await using running = await it.run();
    const problems = await problemsOnce(running, /^kafka topic waiting\.unknown: .*does not exist: create it/);
    assert.equal(problems.length, 1, "nothing else is wrong");
    const blocked = 'outbox_relay_blocked_topics{destination="kafka"}';
    await until("the metric tells", async () => sample((await running.get("/metrics")).body, blocked) === 1);
    const more = await it.insert(eventsOf("waiting.known", 5));
    await it.waitFor("the others go on", async () => (await it.pendingCount()) === unknown.length);
    assert.deepEqual(await it.sql("select from outbox_relay.holds"), [], "waiting is no attempt");
    await kafka.createTopic("waiting.unknown");
    await it.drained();
    await running.becomes("healthy");
    assertOnce(await read("waiting.known"), [...known, ...more]);
    assertOnce(await read("waiting.unknown"), unknown);
  });

  test("A8 A9 A10: a failing event is tried again in doubling pauses, a restart forgets none of it, the last failure is dead", async () => {
    await using it = await stage({
      KAFKA_BROKERS: kafka.brokers,
      MAX_RETRIES: "4",
      RETRY_INITIAL_DELAY_MS: "1s",
    });
    await kafka.createTopic("retried");
    // A network that spoils a record: the broker finds the checksum wrong, again and again.
    let isFlaky = true;
    proxy.decide = ({ frame }) => {
      const poison = frame.indexOf("spoil for good");
      const flaky = frame.indexOf("spoil for a while");
      if (poison >= 0) frame[poison] = 0;
      if (flaky >= 0 && isFlaky) frame[flaky] = 0;
      return { kind: "pass" };
    };
    const [poison, flaky] = await it.insert([
      { type: "retried", key: "poison", payload: '"spoil for good"' },
      { type: "retried", key: "flaky", payload: '"spoil for a while"' },
      { type: "retried", key: "poison" },
    ]);
    const others = await it.insert(eventsOf("retried", 20));
    const attemptsOf = async (id: string): Promise<number> => {
      const [row] = await it.sql<{ attempts: number }>("select attempts from outbox_relay.holds where event_id = $1", [
        id,
      ]);
      return row?.attempts ?? 0;
    };
    {
      await using first = await it.run();
      await it.waitFor("the second try has failed", async () => (await attemptsOf(poison!)) >= 2);
      isFlaky = false;
      first.kill("SIGTERM");
      assert.equal((await first.ended).code, 0);
    }
    await using second = await it.run();
    await second.logged("the end", ({ event, eventId }) => event === "IntentDeadLettered" && eventId === poison);
    await it.waitFor("all but the poison and its follower are marked", async () => (await it.pendingCount()) === 2);
    assertOnce(await read("retried"), [flaky!, ...others]);
    const [letter, ...more] = await deadLetters(it);
    assert.deepEqual([letter?.id, letter?.count, more], [poison, 4, []]);
    assert.deepEqual(
      letter?.errors.map(({ attempt }) => attempt),
      [1, 2, 3, 4],
    );
    for (const { reason } of letter!.errors) assert.match(reason, /CORRUPT_MESSAGE/);
    const times = letter!.errors.map(({ at }) => Date.parse(at));
    const pausesMs = times.slice(1).map((time, n) => time - times[n]!);
    for (const [n, leastMs] of [1_000, 2_000, 4_000].entries()) {
      assert.ok(pausesMs[n]! >= leastMs, `pause ${n + 1} of ${pausesMs} ms`);
    }
    await until("the metric tells", async () => {
      return sample((await second.get("/metrics")).body, "outbox_relay_failed_events") === 1;
    });
  });

  test("G5 A2: SIGTERM in the middle of traffic ends with 0, and another process goes on: every event once", async () => {
    await using it = await stage({ TRANSACTION_SIZE: "10" });
    await kafka.createTopic("rolling", { partitions: 3 });
    const ids: string[] = [];
    await using follower = await followTopic(kafka.directBrokers, "rolling");
    for (const round of [1, 2]) {
      ids.push(...(await it.insert(eventsOf("rolling", 1_500, 20))));
      await using running = await it.run();
      const before = follower.records.length;
      await follower.waitFor((records) => records.length > before + 100);
      const writing = it.insert(eventsOf("rolling", 100, 20));
      running.kill("SIGTERM");
      const { code, stderr } = await running.ended;
      assert.equal(code, 0, stderr);
      ids.push(...(await writing));
      assert.ok((await it.pendingCount()) > 0, `round ${round} ended amid its work`);
      const marked = await it.sql<{ id: string }>("select id from orders.outbox where published");
      const markedIds = marked.map(({ id }) => id);
      assertOnce(await read("rolling"), markedIds, "what is marked is what is there");
    }
    assert.equal((await it.once()).code, 0);
    assertOnce(await read("rolling"), ids);
  });

  test("G2: --once ends with 0 when all is delivered, and with 1 and the address when nobody is there", async () => {
    await using it = await stage();
    await kafka.createTopic("once");
    const ids = await it.insert(eventsOf("once", 10));
    const nobody = `127.0.0.1:${await freePort()}`;
    const lost = await it.once({ KAFKA_BROKERS: nobody });
    assert.equal(lost.code, 1, lost.stderr);
    assert.match(lost.stderr, /not reachable: kafka/);
    assert.ok((lost.stderr + lost.stdout).includes(`Kafka at ${nobody}: connection refused`), lost.stderr);
    const { code, stderr } = await it.once();
    assert.equal(code, 0, stderr);
    assert.match(stderr, /^10 events delivered$/m);
    assertOnce(await read("once"), ids);
    assert.deepEqual(await deadLetters(it), []);
  });

  test("A20 A7 G2: a wrong password and every missing right are named, with what to do; once the topic is allowed its events go", async () => {
    await using secure = await startSecureKafka();
    const where = { on: "TOPIC", name: "guarded" } as const;
    await using it = await stage({
      KAFKA_BROKERS: secure.saslBrokers,
      KAFKA_SASL_MECHANISM: "SCRAM-SHA-256",
      KAFKA_USERNAME: "relay",
      KAFKA_PASSWORD: "relay-secret",
      KAFKA_SSL_CA: secure.certificates.authority.certificate,
      SERVICE_NAME: "guarded-relay",
    });
    await secure.createTopic("guarded");
    const ids = await it.insert(eventsOf("guarded", 5));
    {
      await using stranger = await it.run({ KAFKA_PASSWORD: "not-the-secret" });
      const [problem] = await problemsOnce(stranger, /^kafka: .*SASL_AUTHENTICATION_FAILED/);
      assert.match(problem!, /refused the credentials/);
      assert.doesNotMatch(stranger.stderr() + stranger.stdout(), /not-the-secret/);
      stranger.kill("SIGTERM");
      assert.equal((await stranger.ended).code, 0);
    }
    const wrong = await it.once({ KAFKA_PASSWORD: "not-the-secret" });
    assert.equal(wrong.code, 1, wrong.stderr);

    const noTransactions = await it.once();
    assert.equal(noTransactions.code, 2, noTransactions.stderr);
    assert.match(noTransactions.stderr, /TransactionalId "guarded-relay\." .*kafka-acls\.sh .*--transactional-id/);
    assert.match(noTransactions.stderr, /DELIVERY=at-least-once/);
    const ledger = "outbox-relay.ledger.guarded-relay";
    await secure.allow("User:relay", [
      { operations: ["WRITE", "DESCRIBE"], on: "TRANSACTIONAL_ID", name: "guarded-relay", prefixed: true },
    ]);
    const noLedger = await it.once();
    assert.equal(noLedger.code, 2, noLedger.stderr);
    assert.match(noLedger.stderr, new RegExp(`Topic "${ledger}": .kafka-acls\\.sh .*--topic ${ledger}`));
    const operations = ["READ", "WRITE", "DESCRIBE", "DESCRIBE_CONFIGS", "CREATE", "ALTER"] as const;
    await secure.allow("User:relay", [{ operations, on: "TOPIC", name: ledger }]);

    await using running = await it.run();
    await problemsOnce(running, /^kafka topic guarded: .*TOPIC_AUTHORIZATION_FAILED.*grant Write and Describe/);
    assert.deepEqual(await it.sql("select from outbox_relay.holds"), [], "a missing right is no attempt");
    await secure.allow("User:relay", [{ operations: ["WRITE", "DESCRIBE"], ...where }]);
    await it.drained();
    await running.becomes("healthy");
    assertOnce(await readTopic(secure.directBrokers, "guarded"), ids);
  });
});

describe("outbox-relay run and a broker that goes away", () => {
  test("A3 A2: a broker that is killed amid 2,000 events of 50 keys costs neither an event nor its order", async () => {
    await using it = await stage({ TRANSACTION_SIZE: "50" });
    await kafka.createTopic("ordered", { partitions: 6 });
    await using running = await it.run();
    await using follower = await followTopic(kafka.directBrokers, "ordered");
    const all = eventsOf("ordered", 2_000, 50);
    const ids: string[] = [];
    const write = async (upTo: number) => {
      while (ids.length < upTo) ids.push(...(await it.insert(all.slice(ids.length, ids.length + 50))));
    };
    await write(500);
    await follower.waitFor(100);
    const writing = write(1_500);
    await kafka.kill();
    await writing;
    await kafka.restart();
    await write(2_000);
    await it.drained();
    const records = await read("ordered");
    assertOnce(records, ids);
    assert.deepEqual(disorderIn(records, numberOf), []);
    assert.deepEqual(await deadLetters(it), []);
    await running.becomes("healthy");
  });

  test("A4 A18: while the broker is down the backlog grows, no attempt is spent, and all drains by itself", async () => {
    await using it = await stage();
    await kafka.createTopic("backlog");
    await using running = await it.run();
    const ids = await it.insert(eventsOf("backlog", 10));
    await it.drained();
    await kafka.stop();
    ids.push(...(await it.insert(eventsOf("backlog", 500))));
    const health = await until("the health counts them", async () => {
      const { status, unpublishedEventCount, problems } = (await running.get("/health")).json();
      return status === "degraded" && unpublishedEventCount === 500 && problems;
    });
    assert.match(JSON.stringify(health), /"part":"destination","name":"kafka"/);
    const lag = async () => sample((await running.get("/metrics")).body, 'outbox_relay_lag_seconds{schema="orders"}');
    await until("the lag tells", async () => (await lag()) > 0);
    assert.deepEqual(await it.sql("select from outbox_relay.holds"), []);
    await kafka.restart();
    await it.drained();
    await running.becomes("healthy");
    assertOnce(await read("backlog"), ids);
    assert.deepEqual([await it.sql("select from outbox_relay.holds"), await deadLetters(it)], [[], []]);
    assert.equal(idsOf(await read("backlog")).length, 510);
  });
});
