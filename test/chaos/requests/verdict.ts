import type { Transfer } from "./bank.ts";
import { type PlannedRequest, SECRET } from "./plan.ts";
import type { AddedJob, RedisHistory } from "./redis-history.ts";
import type { StoredEvent } from "./stored-log.ts";

/** What was found by others than those that were killed. */
export interface Evidence {
  readonly requests: readonly PlannedRequest[];
  readonly events: readonly StoredEvent[];
  readonly history: RedisHistory;
  readonly transfers: ReadonlyMap<string, Transfer>;
  readonly calls: ReadonlyMap<string, number>;
}

export interface Verdict {
  readonly requests: number;
  readonly completed: number;
  readonly failed: number;
  /** Failures that asked for another try. */
  readonly retries: number;
  readonly jobs: number;
  readonly violations: readonly string[];
}

const [CREATED, COMPLETED, FAILED] = ["PayoutCreated.v1", "PayoutCompleted.v1", "PayoutFailed.v1"] as const;

const isOutcome = ({ type }: StoredEvent) => type === COMPLETED || type === FAILED;
const isFinal = ({ data, type }: StoredEvent) => type === COMPLETED || (type === FAILED && data.final === true);
const asks = ({ metadata }: StoredEvent) => metadata.intent === "outbox";
const streamOf = ({ id, tenant }: PlannedRequest) => `payment.payout.request-${tenant}-${id}`;
const keyOf = ({ id, tenant }: PlannedRequest) => `${tenant}:${id}:0`;

/** One outcome per request, one job per event that asks for one, one transfer per payout; and nothing else. */
export function judge(evidence: Evidence): Verdict {
  const { calls, events, history, requests, transfers } = evidence;
  const streams = Map.groupBy(events, ({ stream }) => stream);
  const known = new Set(requests.map(streamOf));
  const keys = new Set(requests.map(keyOf));
  const finals = events.filter(isFinal);
  return {
    requests: requests.length,
    completed: finals.filter(({ type }) => type === COMPLETED).length,
    failed: finals.filter(({ type }) => type === FAILED).length,
    retries: events.filter((event) => isOutcome(event) && asks(event)).length,
    jobs: history.added.length,
    violations: [
      ...[...streams.keys()].filter((stream) => !known.has(stream)).map((stream) => `${stream}: nobody asked for it`),
      ...requests.flatMap((request) => judgeStream(request, streams.get(streamOf(request)) ?? [])),
      ...requests.flatMap((request) => judgeBank(request, streams.get(streamOf(request)) ?? [], transfers)),
      ...[...calls.keys()].filter((key) => !keys.has(key)).map((key) => `the bank was asked by the strange key ${key}`),
      ...judgeJobs(events, history),
    ],
  };
}

function judgeStream(request: PlannedRequest, events: readonly StoredEvent[]): string[] {
  const stream = streamOf(request);
  const [created] = events;
  if (created?.type !== CREATED) return [`${stream}: lost, it does not begin with its request`];
  const finals = events.filter(isFinal);
  const wrong: string[] = [];
  if (finals.length !== 1) wrong.push(`${finals.length} final outcomes`);
  const final = finals[0];
  if (final !== undefined && final !== events.at(-1)) wrong.push("something follows its final outcome");
  const ending = endingOf(final);
  if (final !== undefined && ending !== request.ending) wrong.push(`${ending} instead of ${request.ending}`);
  // Each event but the last asks for a job, and the one behind it is what became of that.
  for (const [index, event] of events.entries()) {
    if (index === 0) continue;
    wrong.push(...judgeOutcome(event, events[index - 1]!, created, index).map((what) => `revision ${index}: ${what}`));
  }
  return wrong.map((what) => `${stream}: ${what}`);
}

function judgeOutcome(event: StoredEvent, asking: StoredEvent, created: StoredEvent, attempt: number): string[] {
  const { data, metadata } = event;
  const notBefore = Date.parse(String(asking.metadata.notBefore ?? new Date(0).toISOString()));
  const wrong: [boolean, string][] = [
    [!isOutcome(event), `${event.type} is no outcome`],
    [!asks(asking), "an outcome of what asked for nothing"],
    [metadata.causationId !== asking.id, `its causationId is not the event before it`],
    [metadata.correlationId !== created.metadata.correlationId, "another correlationId than its request's"],
    [metadata.tenant !== created.metadata.tenant, "another tenant than its request's"],
    [metadata.eventId !== event.id, "another eventId than its own"],
    [event.type === FAILED && data.attempt !== attempt, `attempt ${data.attempt} instead of ${attempt}`],
    [isFinal(event) && asks(event), "it is final and asks for another try"],
    [!isFinal(event) && !asks(event), "it is not final and asks for nothing"],
    [asks(event) && Number.isNaN(Date.parse(String(metadata.notBefore))), "it asks without saying when"],
    [event.createdMs < notBefore, `${notBefore - event.createdMs} ms before it was due`],
  ];
  return wrong.flatMap(([isWrong, what]) => (isWrong ? [what] : []));
}

function endingOf(final: StoredEvent | undefined): PlannedRequest["ending"] {
  if (final?.type === COMPLETED) return "completed";
  return /refuses/.test(String(final?.data.reason)) ? "refused" : "exhausted";
}

function judgeBank(
  request: PlannedRequest,
  events: readonly StoredEvent[],
  transfers: ReadonlyMap<string, Transfer>,
): string[] {
  const paid = transfers.get(keyOf(request))?.transfer;
  const completed = events.find(({ type }) => type === COMPLETED);
  const said = (completed?.data.result as Transfer | undefined)?.transfer;
  return paid === said
    ? []
    : [`${streamOf(request)}: the bank did ${paid ?? "nothing"}, the log says ${said ?? "nothing"}`];
}

function judgeJobs(events: readonly StoredEvent[], { added, announced, bytes }: RedisHistory): string[] {
  const asking = new Map(events.filter(asks).map((event) => [event.id, event]));
  const jobs = Map.groupBy(added, ({ id }) => id);
  const announcements = Map.groupBy(announced, (id) => id);
  return [
    ...[...asking.keys()].flatMap((id) => {
      const counts = [jobs.get(id)?.length ?? 0, announcements.get(id)?.length ?? 0];
      return counts.every((count) => count === 1) ? [] : [`event ${id}: ${counts[0]} jobs, ${counts[1]} announced`];
    }),
    ...[...jobs.keys()].filter((id) => !asking.has(id)).map((id) => `job ${id}: no event asked for it`),
    ...added.flatMap((job) => judgeJob(job, asking.get(job.id))),
    ...(bytes.includes(SECRET) ? ["Redis was told what only the log and the bank may know"] : []),
  ];
}

function judgeJob({ data, id, name, opts }: AddedJob, event: StoredEvent | undefined): string[] {
  const reference = JSON.stringify({ tenant: event?.metadata.tenant, requestId: event?.data.id });
  const isRight = JSON.stringify(data) === reference && name === "execute-request" && opts.attempts === 1;
  return isRight ? [] : [`job ${id}: ${name} ${JSON.stringify(data)} is not the reference ${reference}`];
}
