import { Pool } from "undici";
import type { Message } from "../../src/core/event.ts";
import { httpPublisher } from "../../src/publishers/http/http-publisher.ts";
import { startHttpReceiver } from "../../test/servers/http-receiver.ts";
import type { PublisherBench } from "./publisher-stand.ts";

const CONCURRENCY = 32;

export const httpBench: PublisherBench = {
  name: "http",
  async open() {
    const receiver = await startHttpReceiver();
    const publisher = httpPublisher({ url: `${receiver.origin}/bench`, concurrency: CONCURRENCY, sendMs: 60_000 });
    const pool = new Pool(receiver.origin, { connections: CONCURRENCY, pipelining: 1 });
    return {
      publisher,
      topic: "bench.event",
      sendRaw: async (batch) => void (await Promise.all(batch.map((message) => post(pool, message)))),
      arrived: async () => receiver.arrivals().length,
      [Symbol.asyncDispose]: async () => {
        await publisher.close();
        await pool.destroy();
        await receiver[Symbol.asyncDispose]();
      },
    };
  },
};

/** By `dispatch`, which costs less than the client's `request`: the harder measure. */
function post(pool: Pool, { event, headers, key, payload, topic }: Message): Promise<void> {
  return new Promise((resolve, reject) => {
    let status = 0;
    const own = { "content-type": "application/json", "idempotency-key": event.id, "event-type": topic };
    const all = { ...headers, ...own, ...(key === null ? {} : { "partition-key": key }) };
    pool.dispatch(
      { path: "/bench", method: "POST", headers: all, body: payload },
      {
        onRequestStart: () => {},
        onResponseStart: (_controller, code) => {
          status = code;
        },
        onResponseData: () => {},
        onResponseEnd: () => (status === 204 ? resolve() : reject(new Error(`the receiver answered ${status}`))),
        onResponseError: (_controller, error) => reject(error),
      },
    );
  });
}
