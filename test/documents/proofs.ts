import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Queue } from "bullmq";
import { SQS_ENVIRONMENT } from "../servers/elasticmq.ts";
import { readTopic } from "../servers/kafka-reader.ts";
import { createStream, readStream } from "../servers/nats.ts";
import { openOutboxTableSql } from "../servers/openoutbox-table.ts";
import { overRabbit, takeAll } from "../servers/rabbitmq-reader.ts";
import { until } from "../servers/until.ts";
import { createTimeEntries, withPoisonIntent } from "./intents.ts";
import { readPage } from "./page.ts";
import type { Walk } from "./walk.ts";

type Hook = (walk: Walk) => Promise<unknown>;

interface Proof {
  /** What the page takes for granted. */
  readonly before?: Hook;
  /** What the reader does, or what happens, before the first block under this heading. */
  readonly at?: Readonly<Record<string, Hook>>;
  /** What has to be true when the last command was typed; the page's service still runs. */
  readonly after?: Hook;
}

async function arrivesInKafka({ servers }: Walk, topic: string, ...values: readonly string[]): Promise<void> {
  const { directBrokers } = await servers.kafka();
  await until(`${values.join(" and ")} in the topic ${topic}`, async () => {
    const records = await readTopic(directBrokers, topic).catch((error: Error) => {
      if (!error.message.includes("Unknown topic")) throw error; // the first event of a topic creates it
      return [];
    });
    const there = records.map(({ value }) => String(value));
    return values.every((value) => there.includes(value));
  });
}

async function arrivesAt({ servers }: Walk, url: string, body: RegExp) {
  const receiver = await servers.receiver();
  return await until(`${body} at ${url}`, () =>
    receiver.arrivals().find((arrival) => arrival.url === url && body.test(String(arrival.body))),
  );
}

/** The file of the page that the reader was sent to. */
async function writePayrollRelay(walk: Walk): Promise<void> {
  const { blocks } = readPage("docs/recipes/intent-relays.md");
  await walk.follow(blocks.filter(({ text }) => text.startsWith("// relays/sync-to-payroll-relay.ts\n")));
}

/** With LOG_START=now, what is written before is left out. */
async function readsTheLog({ shop }: Walk): Promise<void> {
  await until("every slot is read", async () => {
    const slots = await shop.query<{ active: boolean }>("select active from pg_replication_slots");
    return slots.length > 0 && slots.every(({ active }) => active);
  });
}

const EXCHANGE = "waiting_room_events";
const POISON = "7c0f1e52-3d5b-4c8e-9a54-2f1f6b1c9d10";

const DEBEZIUM_TABLE = `create schema shop; create table shop.outboxevent (id uuid primary key,
  aggregatetype text not null, aggregateid text not null, type text not null, payload jsonb not null)`;

/** As the services of a Debezium user write it. */
async function writeToDebezium({ shop }: Walk, order: number): Promise<void> {
  await shop.run(`insert into shop.outboxevent (id, aggregatetype, aggregateid, type, payload)
    values ('${randomUUID()}', 'order', '${order}', 'order.placed', '{"order": ${order}}')`);
}

/** What the commands of a page do not do or show by themselves. */
/** Of orders that were placed through an application that runs the relay itself. */
async function ordersArePublished({ shop }: Walk, ...ids: readonly string[]): Promise<void> {
  await until(`${ids.join(" and ")} are published`, async () => {
    const rows = await shop.query<{ id: string }>(`select orders.id from shop.orders
      join shop.outbox on aggregate_id = orders.id and published_at is not null`);
    return ids.every((id) => rows.some((row) => row.id === id));
  });
}

export const PROOFS: Readonly<Record<string, Proof>> = {
  "docs/recipes/aws-lambda.md": {
    before: async (walk) => {
      await writePayrollRelay(walk);
      await createTimeEntries(await walk.servers.dynamodb());
    },
    at: {
      "When an intent fails": async (walk) => {
        await arrivesAt(walk, "/hours", /"employee":"user-7","hours":8/);
        await withPoisonIntent(await walk.servers.dynamodb());
      },
    },
    after: (walk) =>
      walk.shell(`node -e 'import("./lambdas/sync-to-payroll.ts").then(({ handler }) => handler.type.at(0))'`),
  },
  "docs/recipes/config-file.md": {
    at: {
      "With types": async (walk) => {
        await walk.shop.run(`insert into orders.outbox (aggregate_id, event_type, payload)
          values ('1', 'by.file', '{"by": "file"}')`);
        await arrivesInKafka(walk, "by.file", '{"by": "file"}');
      },
    },
  },
  "docs/recipes/dynamodb.md": {
    before: writePayrollRelay,
    at: { "When an intent fails": async (walk) => withPoisonIntent(await walk.servers.dynamodb()) },
  },
  "docs/recipes/fastify-and-express.md": {
    after: (walk) => ordersArePublished(walk, "fastify-1", "express-1"),
  },
  "docs/recipes/from-debezium.md": {
    before: ({ shop }) => shop.run(DEBEZIUM_TABLE),
    at: {
      "Or read the table": async (walk) => {
        await readsTheLog(walk);
        await writeToDebezium(walk, 1);
        await arrivesInKafka(walk, "outbox.event.order", '{"order": 1}');
        await walk.stop();
      },
    },
    after: async (walk) => {
      await writeToDebezium(walk, 2);
      await until("the row is marked", async () => {
        const rows = await walk.shop.query("select 1 from shop.outboxevent where published_at is null");
        return rows.length === 0;
      });
      await arrivesInKafka(walk, "order.placed", '{"order": 2}');
    },
  },
  "docs/recipes/from-open-outbox-relay.md": {
    before: ({ shop }) =>
      shop.run(`create role relay login; ${openOutboxTableSql("public.openoutbox_events")};
        grant select, update on public.openoutbox_events to relay;
        insert into public.openoutbox_events (event_id, event_type, payload) values (gen_random_uuid(), 'open.outbox', 'open')`),
    after: (walk) => arrivesInKafka(walk, "open.outbox", "open"),
  },
  "docs/recipes/intent-relays.md": {
    after: async (walk) => {
      const { body } = await arrivesAt(walk, "/hours", /"employee":"user-7","hours":8/);
      assert.match(String(body), /"idempotency_key":"[0-9a-f-]{36}"/);
    },
  },
  "docs/recipes/kurrentdb.md": {
    before: async ({ servers }) => {
      const stream = "payment.payout.request-acme-4711";
      await (await servers.kurrentdb()).seed([
        { stream, type: "PayoutCreated", data: { id: "4711" }, metadata: { intent: "outbox" } },
      ]);
    },
    after: async ({ servers }) => {
      const connection = { host: "127.0.0.1", port: (await servers.redis()).port };
      const queue = new Queue("payment.payout", { connection });
      try {
        const jobs = await queue.getJobs(["waiting", "delayed"]);
        assert.deepEqual(
          jobs.map(({ data }) => data as object),
          [{ tenant: "acme", requestId: "4711" }],
        );
      } finally {
        await queue.close();
      }
    },
  },
  "docs/recipes/managed-outbox.md": {
    after: async (walk) => {
      await arrivesInKafka(walk, "order.placed", '{"order": 4711}', '{"order":4712}');
      await arrivesInKafka(walk, "order.paid", '{"order": 4711, "cents": 990}');
    },
  },
  "docs/recipes/nats.md": {
    before: async ({ servers }) =>
      createStream((await servers.nats()).port, "ORDERS", { subjects: ["order.>"], duplicate_window: 3_600e9 }),
    after: async ({ servers }) => assert.equal((await readStream((await servers.nats()).port, "ORDERS")).length, 1),
  },
  "docs/recipes/rabbitmq.md": {
    at: {
      "A worker's table and its own variables": async ({ servers }) => {
        const { url } = await servers.rabbit();
        assert.equal((await takeAll(url, "orders")).length, 1);
        await overRabbit(url, async (channel) => {
          await channel.assertExchange(EXCHANGE, "topic", { durable: true });
          await channel.assertQueue("room", { durable: true });
          await channel.bindQueue("room", EXCHANGE, "#");
        });
      },
      "When an event is poison": async ({ shop }) => {
        // A routing key has at most 255 bytes.
        await shop.run(`insert into public.event_outbox (event_id, event_name, aggregate_id, payload, occurred_at)
          values ('${POISON}', repeat('x', 300), 'p-1', '{}', now())`);
        await until("the poison is a dead letter", async () => {
          const rows = await shop.query("select 1 from public.event_outbox where status = 'Failed'");
          return rows.length === 1;
        });
      },
    },
  },
  "docs/recipes/redis-outbox.md": {
    after: (walk) => arrivesInKafka(walk, "order.placed", '{"id":"4711","customer":"customer-7"}'),
  },
  "docs/recipes/sqs.md": {
    before: async (walk) => {
      walk.set(SQS_ENVIRONMENT);
      await (await walk.servers.sqs()).createQueue("orders.fifo");
    },
    after: async ({ servers }) => {
      const sqs = await servers.sqs();
      const [message, ...others] = await sqs.drain(await sqs.createQueue("orders.fifo"));
      assert.deepEqual([message?.MessageAttributes?.topic?.StringValue, others], ["outbox-relay.smoke", []]);
    },
  },
  "docs/recipes/subscribers.md": {
    at: {
      "Remove a subscriber": async (walk) => {
        await arrivesAt(walk, "/audit", /^\{"order": 4711\}$/);
        await arrivesInKafka(walk, "search.order.placed", '{"order": 4711}');
        await walk.stop();
        const file = join(walk.folder, "outbox-relay.config.yaml");
        writeFileSync(file, readFileSync(file, "utf8").replace(/ {2}- name: audit\n(?: {4}.*\n)*/, ""));
      },
    },
  },
  "docs/recipes/wal.md": {
    at: {
      "Events without a table": async (walk) => {
        await readsTheLog(walk);
        await walk.shop.run(`insert into orders.outbox (aggregate_id, event_type, payload)
          values ('1', 'by.table', '{"by": "table"}')`);
        await arrivesInKafka(walk, "by.table", '{"by": "table"}');
      },
    },
    after: (walk) => arrivesInKafka(walk, "order.shipped", '{"order": 4711}'),
  },
  "docs/recipes/webhooks.md": {
    after: async (walk) => {
      const { headers } = await arrivesAt(walk, "/events", /./);
      assert.match(headers["webhook-signature"] ?? "", /^v1,/);
    },
  },
};
