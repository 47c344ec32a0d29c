import { unreachable } from "../../core/connection-cause.ts";
import { RelayError } from "../../core/errors.ts";
import type { Message } from "../../core/event.ts";
import { LinkPool, publishOverLink } from "../../core/link-pool.ts";
import { delivered, rejected } from "../../core/outcome.ts";
import { answerIn } from "../../core/redis-errors.ts";
import { examineRedisServer } from "../../core/redis-link.ts";
import type { Publisher, Report } from "../../ports/publisher.ts";
import { BullmqLink, loadBullmq } from "./bullmq-client.ts";
import { type BullmqPublisherOptions, type BullmqSettings, bullmqSettings } from "./bullmq-config.ts";
import { connectionReason, outcomeOf } from "./bullmq-errors.ts";
import { faultOf, jobOf } from "./bullmq-job.ts";

export type { BullmqPublisherOptions, BullmqTls, Removal } from "./bullmq-config.ts";
export type { BullmqEvent } from "./bullmq-job.ts";

/** Adds a job per event to BullMQ queues. Connects with the first event. */
export function bullmqPublisher(options: BullmqPublisherOptions): Publisher {
  const settings = bullmqSettings(options);
  let pool: Promise<LinkPool<BullmqLink>> | null = null;
  return {
    name: settings.name,
    // `addBulk` is a pipeline: if Redis refuses a job, the later ones are still added.
    capabilities: { keyOrderInBatch: false, deduplicates: true },
    async publish(batch, report, signal) {
      if (batch.length === 0) return;
      pool ??= loadBullmq().then((library) => new LinkPool(() => new BullmqLink(library, settings)));
      await publishOverLink(await pool, { ...settings, report, signal }, (link, reportOutcome) =>
        deliver(settings, link, batch, reportOutcome),
      );
    },
    async examine(signal) {
      const link = new BullmqLink(await loadBullmq(), settings);
      const where = `Redis at ${settings.host}:${settings.port}`;
      const reasonOf = (error: unknown) => connectionReason(settings, error);
      return await examineRedisServer(link, { ...settings, where, reasonOf }, signal);
    },
    async close() {
      await (await pool?.catch(() => null))?.close();
    },
  };
}

/** Rejects with PUBLISH_UNKNOWN when some messages got no answer; those are not reported. */
async function deliver(
  settings: BullmqSettings,
  link: BullmqLink,
  batch: readonly Message[],
  report: Report,
): Promise<void> {
  const queues = new Map<string, number[]>();
  for (const [index, message] of batch.entries()) {
    const fault = faultOf(message, settings);
    const queue = settings.queue ?? message.topic;
    if (fault !== null) report(index, rejected(fault));
    else if (queues.has(queue)) queues.get(queue)!.push(index);
    else queues.set(queue, [index]);
  }
  if (queues.size === 0) return;
  try {
    await link.open();
  } catch (error) {
    const outcome = unreachable(connectionReason(settings, error), error);
    for (const index of [...queues.values()].flat()) report(index, outcome);
    return;
  }
  let unanswered: string | null = null;
  const add = async ([queue, indexes]: readonly [string, readonly number[]]) => {
    try {
      await link.addBulk(
        queue,
        indexes.map((index) => jobOf(batch[index]!, settings)),
      );
      for (const index of indexes) report(index, delivered);
    } catch (error) {
      const said = answerIn(error);
      if (said === null)
        unanswered ??= `queue "${queue}": sent, but no response: ${connectionReason(settings, link.explained(error))}`;
      else for (const index of indexes) report(index, outcomeOf(said, queue));
    }
  };
  await Promise.all([...queues].map(add));
  if (unanswered !== null) throw new RelayError("PUBLISH_UNKNOWN", `${unanswered}.`);
}
