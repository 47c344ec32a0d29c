import { RelayError } from "../../core/errors.ts";
import type { Dispatched, RequestBatch, RequestGroup, RequestJob, RequestLease } from "../../ports/request-queue.ts";
import { dispatchedKey } from "../../requests/request-names.ts";
import type { BullmqLink, Transaction } from "./bullmq-client.ts";
import { answerIn } from "./bullmq-errors.ts";
import { groupKeys } from "./request-keys.ts";
import { MARK } from "./request-scripts.ts";

/** Somebody may touch what was looked at: a relay that was fenced meanwhile, a marker that expired, a worker's own jobs. */
const TRIES = 5;

/** What a job is added with, besides its id. Retries are events of their own and no business of BullMQ's. */
interface RequestJobOptions {
  readonly removeOnComplete: boolean | number;
  readonly removeOnFail: boolean | number;
}

/**
 * Markers are looked at, jobs added, markers set and the position moved in one transaction, which Redis drops when
 * anybody touched lease, position or turns since the look, as whoever sets a marker does. So a job and its marker are
 * there together or not at all, whoever crashes, and however late somebody wakes up. Without a lease it is a person's wish, and no position moves.
 */
export async function dispatch(
  link: BullmqLink,
  group: RequestGroup,
  lease: RequestLease | null,
  batch: RequestBatch,
  { sent, ...options }: RequestJobOptions & Pick<Trial, "sent">,
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
    // Somebody else added these, or a script stopped halfway.
    for (const id of missing) if (await link.hasJob(group.queue, id)) known.add(id);
  }
  throw new RelayError("PUBLISH_FAILED", `queue "${group.queue}": somebody else keeps changing what is dispatched.`);
}

type Results = NonNullable<Awaited<ReturnType<Transaction["exec"]>>> & { ids: readonly string[] };

interface Trial {
  readonly options: RequestJobOptions;
  /** Jobs that are there without a marker. */
  readonly known: ReadonlySet<string>;
  /** Called once Redis has it to do. */
  readonly sent?: (() => void) | undefined;
}

/** Null when the transaction was dropped. */
async function tryOnce(
  link: BullmqLink,
  group: RequestGroup,
  lease: RequestLease | null,
  batch: RequestBatch,
  { known, options, sent }: Trial,
): Promise<Results | null> {
  const keys = groupKeys(group);
  const markers = batch.jobs.map(({ eventId, tenant }) => dispatchedKey(group, tenant, eventId));
  // Whoever sets a marker touches one of the three: to watch every marker would cost their square.
  const [token, position, turns, ...marked] = await link.watch([keys.lease, keys.position, keys.turns], markers);
  if (lease !== null) requireTurn({ token, position, turns }, group, lease, batch);
  const isDone = new Set(batch.jobs.flatMap(({ eventId }, index) => (marked[index] ? [eventId] : [])));
  const transaction = await link.transaction(group.queue);
  if (lease === null && turns) transaction.set(keys.turns, turns, "XX");
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
  const delayed = jobs.filter(({ opts }) => "delay" in opts);
  for (const job of delayed) await link.addJob(transaction, group.queue, job);
  const others = delayed.length === 0 ? jobs : jobs.filter(({ opts }) => !("delay" in opts));
  await link.addAlike(transaction, group.queue, others);
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

interface Looked {
  readonly token: string | null | undefined;
  readonly position: string | null | undefined;
  readonly turns: string | null | undefined;
}

function requireTurn(
  { position, token, turns }: Looked,
  group: RequestGroup,
  lease: RequestLease,
  batch: RequestBatch,
) {
  const name = `${group.context}.${group.aggregate}`;
  const isGone = !turns || (!position && batch.after !== null);
  if (isGone) throw new RelayError("QUEUE_FORGOT", `Redis knows nothing of ${name} any more, which it did before.`);
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

/** Throws what Redis said of any of the commands. */
function missingOf(results: Results, { queue }: RequestGroup): readonly string[] {
  for (const [error] of results) {
    if (error === null) continue;
    throw new RelayError("PUBLISH_FAILED", `queue "${queue}": ${answerIn(error) ?? error.message}`, { cause: error });
  }
  return results.at(-1)?.[1] as string[];
}
