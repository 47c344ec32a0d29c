import { RelayError } from "../../core/errors.ts";
import type { Message } from "../../core/event.ts";
import { LinkPool } from "../../core/link-pool.ts";
import { delivered, rejected, retry } from "../../core/outcome.ts";
import type { Publisher, Report } from "../../ports/publisher.ts";
import { BullmqLink, loadBullmq } from "./bullmq-client.ts";
import { type BullmqPublisherOptions, type BullmqSettings, bullmqSettings } from "./bullmq-config.ts";
import { answerIn, connectionReason, outcomeOf } from "./bullmq-errors.ts";
import { faultOf, jobOf } from "./bullmq-job.ts";

export type { BullmqPublisherOptions, BullmqTls, Removal } from "./bullmq-config.ts";
export type { BullmqEvent } from "./bullmq-job.ts";

/** Adds a job per event to BullMQ queues. Connects with the first event. */
export function bullmqPublisher(options: BullmqPublisherOptions): Publisher {
  const settings = bullmqSettings(options);
  let pool: Promise<LinkPool<BullmqLink>> | null = null;
  return {
    name: settings.name,
    // A bulk is a pipeline: a job that Redis refuses does not keep the later ones out.
    capabilities: { keyOrderInBatch: false, deduplicates: true },
    async publish(batch, report, signal) {
      if (batch.length === 0) return;
      pool ??= loadBullmq().then((library) => new LinkPool(() => new BullmqLink(library, settings)));
      await publish(settings, await pool, batch, report, signal);
    },
    async close() {
      await (await pool?.catch(() => null))?.close();
    },
  };
}

async function publish(
  settings: BullmqSettings,
  pool: LinkPool<BullmqLink>,
  batch: readonly Message[],
  report: Report,
  signal: AbortSignal,
): Promise<void> {
  const { name, requestTimeoutMs } = settings;
  const link = await pool.take(signal);
  if (link === null) throw unknown(`the publish to "${name}" was given up.`);
  const { promise: ended, reject } = Promise.withResolvers<never>();
  // Nobody may be waiting for it at the moment it rejects.
  ended.catch(() => {});
  let isOver = false;
  const giveUp = (what: string) => {
    isOver = true;
    link.destroy();
    reject(unknown(what));
  };
  const abort = () => giveUp(`the publish to "${name}" was given up.`);
  const timer = setTimeout(() => giveUp(`"${name}" did not answer within ${requestTimeoutMs} ms.`), requestTimeoutMs);
  signal.addEventListener("abort", abort, { once: true });
  const tell: Report = (index, outcome) => {
    if (!isOver) report(index, outcome);
  };
  try {
    await Promise.race([deliver(settings, link, batch, tell), ended]);
  } finally {
    isOver = true;
    clearTimeout(timer);
    signal.removeEventListener("abort", abort);
    pool.giveBack(link);
  }
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
    const outcome = retry(connectionReason(settings, error), { scope: "destination", error });
    for (const index of [...queues.values()].flat()) report(index, outcome);
    return;
  }
  let silence: string | null = null;
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
        silence ??= `queue "${queue}": not answered: ${connectionReason(settings, link.explained(error))}`;
      else for (const index of indexes) report(index, outcomeOf(said, queue));
    }
  };
  await Promise.all([...queues].map(add));
  if (silence !== null) throw unknown(`${silence}.`);
}

function unknown(what: string): RelayError {
  return new RelayError("PUBLISH_UNKNOWN", what);
}
