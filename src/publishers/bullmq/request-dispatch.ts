import { RelayError } from "../../core/errors.ts";
import { answerIn } from "../../core/redis-errors.ts";
import type { Dispatched, RequestBatch, RequestGroup, RequestJob, RequestLease } from "../../ports/request-queue.ts";
import { dispatchedKey } from "../../requests/request-names.ts";
import type { BullmqLink, Transaction } from "./bullmq-client.ts";
import { groupKeys } from "./request-keys.ts";
import { MARK } from "./request-scripts.ts";

/**
 * Watched keys may change concurrently: by a relay that was just fenced, an expired marker, or jobs added by a worker.
 */
const TRIES = 5;

/** The options of a job. BullMQ makes no retries: a retry is an event of its own. */
interface RequestJobOptions {
  readonly removeOnComplete: boolean | number;
  readonly removeOnFail: boolean | number;
}

/**
 * Reads the markers, then adds the jobs, sets their markers and moves the position in one transaction. Redis drops it
 * if lease, position or lease count changed since the read, and every writer of a marker changes one of them. So a job
 * and its marker exist together or not at all, even if a process crashes or a former owner wakes up late. Without a
 * lease an operator dispatches, and the position does not move.
 */
export async function dispatch(
  link: BullmqLink,
  group: RequestGroup,
  lease: RequestLease | null,
  batch: RequestBatch,
  { sent, ...options }: RequestJobOptions & Pick<Attempt, "sent">,
): Promise<Dispatched> {
  const known = new Set<string>();
  const added = new Set<string>();
  for (let tries = 0; tries < TRIES; tries++) {
    const results = await tryOnce(link, group, lease, batch, { options, known, sent });
    if (results === null) continue;
    const missing = missingOf(results, group);
    for (const id of results.ids) if (!missing.includes(id)) added.add(id);
    if (missing.length === 0) {
      const deadCount = batch.dead.length === 0 ? null : Number(results.at(-2)?.[1]);
      // The same event twice in one batch is one job.
      return { isNew: batch.jobs.map(({ eventId }) => added.delete(eventId)), deadCount };
    }
    // Another client added these jobs, or a script stopped halfway.
    for (const id of missing) if (await link.hasJob(group.queue, id)) known.add(id);
  }
  throw new RelayError(
    "PUBLISH_FAILED",
    `queue "${group.queue}": another client changed the markers during ${TRIES} attempts in a row.`,
  );
}

type Results = NonNullable<Awaited<ReturnType<Transaction["exec"]>>> & { ids: readonly string[] };

interface Attempt {
  readonly options: RequestJobOptions;
  /** Jobs that exist without a marker. */
  readonly known: ReadonlySet<string>;
  /** Called once the commands are sent to Redis. */
  readonly sent?: (() => void) | undefined;
}

/** Null when the transaction was dropped. */
async function tryOnce(
  link: BullmqLink,
  group: RequestGroup,
  lease: RequestLease | null,
  batch: RequestBatch,
  { known, options, sent }: Attempt,
): Promise<Results | null> {
  const keys = groupKeys(group);
  const markers = batch.jobs.map(({ eventId, tenant }) => dispatchedKey(group, tenant, eventId));
  // Every writer of a marker changes one of these three keys. Watching each marker would cost quadratic time.
  const [token, position, leaseCount, ...marked] = await link.watch(
    [keys.lease, keys.position, keys.leaseCount],
    markers,
  );
  if (lease !== null) requireLease({ token, position, leaseCount }, group, lease, batch);
  const isDone = new Set(batch.jobs.flatMap(({ eventId }, index) => (marked[index] ? [eventId] : [])));
  const transaction = await link.transaction(group.queue);
  if (lease === null && leaseCount) transaction.set(keys.leaseCount, leaseCount, "XX");
  const jobs: ReturnType<typeof bullmqJob>[] = [];
  const own: string[] = [];
  for (const [index, job] of batch.jobs.entries()) {
    if (isDone.has(job.eventId)) continue;
    isDone.add(job.eventId);
    if (known.has(job.eventId)) {
      transaction.set(markers[index]!, "1", "PX", group.markerMs);
      continue;
    }
    jobs.push(bullmqJob(group, job, options));
    own.push(markers[index]!);
  }
  await link.addToTransaction(transaction, group.queue, jobs);
  const ids = jobs.map(({ id }) => id);
  for (const dead of batch.dead) transaction.call("HSET", keys.dead, dead.eventId, JSON.stringify(dead));
  transaction.hlen(keys.dead);
  const lists = (["wait", "paused", "delayed"] as const).map((part) => link.keyOf(group.queue, part));
  const markedKeys = [keys.position, ...lists, ...own];
  transaction.eval(
    MARK,
    markedKeys.length,
    ...markedKeys,
    String(group.markerMs),
    lease === null ? "" : batch.position,
    ...ids,
  );
  const answer = transaction.exec();
  sent?.();
  const results = await answer;
  return results === null ? null : Object.assign(results, { ids });
}

interface Watched {
  readonly token: string | null | undefined;
  readonly position: string | null | undefined;
  readonly leaseCount: string | null | undefined;
}

function requireLease(
  { position, token, leaseCount }: Watched,
  group: RequestGroup,
  lease: RequestLease,
  batch: RequestBatch,
) {
  const name = `${group.context}.${group.aggregate}`;
  const isGone = !leaseCount || (!position && batch.after !== null);
  if (isGone) throw new RelayError("QUEUE_FORGOT", `Redis has lost the position of ${name}, which it had before.`);
  if (token !== lease.token) {
    throw new RelayError("FENCED", `Another relay dispatches for ${name} now, or the lease ran out.`);
  }
  if ((position ?? null) !== batch.after) {
    throw new RelayError(
      "LEASE_LOST",
      `Redis forgot the last jobs of ${name}: they are read again from its checkpoint.`,
    );
  }
}

function bullmqJob(
  { jobName }: RequestGroup,
  { delayMs, eventId, requestId, tenant }: RequestJob,
  options: RequestJobOptions,
) {
  return {
    id: eventId,
    name: jobName,
    data: { tenant, requestId },
    opts: { jobId: eventId, attempts: 1, ...options, ...(delayMs > 0 ? { delay: delayMs } : {}) },
  };
}

/** Returns the ids of jobs that were not added. Throws the first error of the commands. */
function missingOf(results: Results, { queue }: RequestGroup): readonly string[] {
  for (const [error] of results) {
    if (error === null) continue;
    throw new RelayError("PUBLISH_FAILED", `queue "${queue}": ${answerIn(error) ?? error.message}`, { cause: error });
  }
  return results.at(-1)?.[1] as string[];
}
