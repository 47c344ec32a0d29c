import { RelayError } from "../../core/errors.ts";
import type { Message } from "../../core/event.ts";
import { LinkPool } from "../../core/link-pool.ts";
import type { Publisher, Report } from "../../ports/publisher.ts";
import { loadRedis, RedisLink } from "./redis-client.ts";
import { type RedisPublisherOptions, type RedisSettings, redisSettings } from "./redis-config.ts";
import { Delivery } from "./redis-delivery.ts";

export type { RedisPublisherOptions, RedisTls } from "./redis-config.ts";

/** Delivers to Redis Streams. Connects with the first event. */
export function redisPublisher(options: RedisPublisherOptions): Publisher {
  const settings = redisSettings(options);
  let pool: Promise<LinkPool<RedisLink>> | null = null;
  return {
    name: settings.name,
    // The script stops at the first event that fails, and nothing of a key is sent behind one without an answer.
    capabilities: { keyOrderInBatch: true, deduplicates: settings.dedupeMs > 0 },
    async publish(batch, report, signal) {
      if (batch.length === 0) return;
      pool ??= loadRedis().then((library) => new LinkPool(() => new RedisLink(library, settings)));
      await publish(settings, await pool, batch, report, signal);
    },
    async close() {
      await (await pool?.catch(() => null))?.close();
    },
  };
}

async function publish(
  settings: RedisSettings,
  pool: LinkPool<RedisLink>,
  batch: readonly Message[],
  report: Report,
  signal: AbortSignal,
): Promise<void> {
  const link = await pool.take(signal);
  if (link === null) throw unknown(`the publish to "${settings.name}" was given up.`);
  const { promise: ended, reject } = Promise.withResolvers<never>();
  // Nobody may be waiting for it at the moment it rejects.
  ended.catch(() => {});
  let isOver = false;
  const giveUp = (what: string) => {
    isOver = true;
    link.destroy();
    reject(unknown(what));
  };
  const abort = () => giveUp(`the publish to "${settings.name}" was given up.`);
  const { requestTimeoutMs } = settings;
  const timer = setTimeout(
    () => giveUp(`"${settings.name}" did not answer within ${requestTimeoutMs} ms.`),
    requestTimeoutMs,
  );
  signal.addEventListener("abort", abort, { once: true });
  const tell: Report = (index, outcome) => {
    if (!isOver) report(index, outcome);
  };
  try {
    await Promise.race([new Delivery(settings, link, tell).run(batch), ended]);
  } finally {
    isOver = true;
    clearTimeout(timer);
    signal.removeEventListener("abort", abort);
    pool.giveBack(link);
  }
}

function unknown(what: string): RelayError {
  return new RelayError("PUBLISH_UNKNOWN", what);
}
