import { Producer } from "@platformatic/kafka";
import pg from "pg";
import type { PostgresServer } from "../test/servers/postgres.ts";

const BATCH = 500;

interface RawMessage {
  readonly topic: string;
  readonly key: Buffer;
  readonly value: Buffer;
  readonly headers: Map<Buffer, Buffer>;
}

const HEADERS = ["event-id", "correlation-id", "created-at"].map((name) => Buffer.from(name));

const FLAG_ROWS = `select id::text, correlation_id::text,
    to_char(created_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), aggregate_id::text, payload::text
  from public.outbox order by created_at`;

/** The messages that the relay makes of the rows, of the flag table by default, ready to be sent. */
export async function messagesOf(postgres: PostgresServer, topic: string, rowsSql = FLAG_ROWS): Promise<RawMessage[]> {
  const client = new pg.Client({ connectionString: postgres.url });
  await client.connect();
  const { rows } = await client.query<string[]>({
    text: rowsSql,
    rowMode: "array",
  });
  await client.end();
  return rows.map((row) => ({
    topic,
    key: Buffer.from(row[3]!),
    value: Buffer.from(row[4]!),
    headers: new Map(HEADERS.map((name, index) => [name, Buffer.from(row[index]!)])),
  }));
}

/**
 * What the client alone does with the same messages: idempotent, acknowledged by all replicas, in batches of 500 with
 * so many of them on the wire. The milliseconds until the last acknowledgement.
 */
export async function rawSend(brokers: string, messages: RawMessage[], sendsAtOnce: number): Promise<number> {
  const producer = new Producer<Buffer, Buffer, Buffer, Buffer>({
    clientId: "raw",
    bootstrapBrokers: [brokers],
    idempotent: true,
    acks: -1,
    retries: 3,
  });
  try {
    await producer.initIdempotentProducer({});
    await producer.metadata({ topics: [messages[0]!.topic] });
    const startedMs = performance.now();
    let next = 0;
    const sendOn = async (): Promise<void> => {
      while (next < messages.length) {
        const batch = messages.slice(next, next + BATCH);
        next += BATCH;
        await producer.send({ messages: batch });
      }
    };
    await Promise.all(Array.from({ length: sendsAtOnce }, sendOn));
    return performance.now() - startedMs;
  } finally {
    await producer.close();
  }
}
