import { reasonOf } from "../../core/errors.ts";
import type { EventLog } from "../../ports/event-log.ts";
import type { RequestGroup, RequestQueue } from "../../ports/request-queue.ts";
import { contextName } from "../../requests/request-names.ts";
import type { Finding } from "./finding.ts";

interface ExaminedRequests {
  readonly log: EventLog;
  readonly queue: RequestQueue;
  readonly groups: readonly RequestGroup[];
}

/** Whether requests of an event store can be dispatched, and none are left behind. */
export async function examineRequests({ groups, log, queue }: ExaminedRequests): Promise<readonly Finding[]> {
  const [store, redis] = await Promise.all([complaint(log.ping()), complaint(queue.ping())]);
  const findings: Finding[] = [];
  if (store !== null) findings.push(error("event store", store, "Fix KURRENTDB_URL, or start the event store."));
  if (redis !== null) {
    findings.push(error("redis", redis, "Fix OUTBOX_DESTINATION, or start Redis."));
    return findings;
  }
  findings.push(...(await queue.memory()).map(({ fix, what }) => warning("redis", what, fix)));
  for (const group of groups) findings.push(...(await standingFindings(queue, group)));
  return findings;
}

async function standingFindings(queue: RequestQueue, group: RequestGroup): Promise<Finding[]> {
  const name = contextName(group);
  const { dead, holder, jobs } = await queue.standing(group);
  const failed = jobs.failed ?? 0;
  return [
    ...(holder === null ? [warning(name, "no instance dispatches its requests", "outbox-relay run")] : []),
    ...(dead > 0
      ? [warning(name, `${dead} events request a job that cannot be created`, `outbox-relay requests dead ${name}`)]
      : []),
    ...(failed > 0
      ? [
          warning(
            name,
            `${failed} jobs of the queue ${group.queue} have failed in BullMQ, so no worker handles them`,
            "Check their reasons, then retry them in BullMQ.",
          ),
        ]
      : []),
  ];
}

async function complaint(work: Promise<unknown>): Promise<string | null> {
  try {
    await work;
    return null;
  } catch (cause) {
    return reasonOf(cause);
  }
}

const error = (check: string, what: string, fix: string): Finding => ({ severity: "error", check, what, fix });
const warning = (check: string, what: string, fix: string): Finding => ({ severity: "warning", check, what, fix });
