import { loadConfig } from "../../config/load-config.ts";
import { logStart } from "../../config/sources/log-start.ts";
import type { RequestsConfig } from "../../config/sources/requests-config.ts";
import { RelayError } from "../../core/errors.ts";
import type { Finding } from "../../operations/doctor/finding.ts";
import { examineRequests } from "../../operations/doctor/requests-check.ts";
import type { EventLog } from "../../ports/event-log.ts";
import type { RequestGroup, RequestQueue } from "../../ports/request-queue.ts";
import { bullmqRequestQueue } from "../../publishers/bullmq/request-queue.ts";
import { contextName, streamPrefix } from "../../requests/request-names.ts";
import { positionAt, replayDead } from "../../requests/request-replay.ts";
import { nearestName } from "../../routing/nearest-name.ts";
import { EXIT, Exit } from "../../service/exit.ts";
import { kurrentdbLog } from "../../sources/kurrentdb/kurrentdb-source.ts";
import { configSources } from "../config-sources.ts";
import { oneLine } from "../events/events-commands.ts";
import { type Form, printJson, textTable } from "../terminal/output.ts";

interface Tools {
  readonly requests: RequestsConfig;
  readonly log: EventLog;
  readonly queue: RequestQueue;
}

/** Bound for the dead requests of one replay. */
const REPLAY_MAX = 10_000;

async function withTools(work: (tools: Tools) => Promise<number>): Promise<number> {
  const { config } = await loadConfig(configSources());
  const { requests } = config;
  if (requests === null)
    throw new RelayError(
      "CONFIG_INVALID",
      "KURRENTDB_URL is not set: there are no requests. Set it, or use the commands for outboxes in a database.",
    );
  const log = kurrentdbLog(requests.log);
  const queue = bullmqRequestQueue(requests.queue);
  try {
    return await work({ requests, log, queue });
  } finally {
    await Promise.all([log.close(), queue.close()]);
  }
}

function groupOf({ requests }: Tools, name: string): RequestGroup {
  const found = requests.groups.find((group) => contextName(group) === name);
  if (found !== undefined) return found;
  const names = requests.groups.map(contextName);
  const nearest = nearestName(name, names);
  const hint = nearest === undefined ? `there are ${names.join(", ")}` : `did you mean ${nearest}?`;
  throw new Exit(EXIT.notFound, [`OUTBOX_CONTEXTS has no context ${name}: ${hint}`]);
}

/** `outbox-relay doctor` for an event store. */
export function doctorCommand(
  show: (findings: readonly Finding[], things: string) => Promise<number>,
): Promise<number> {
  return withTools(async ({ log, queue, requests: { groups } }) => {
    const findings = await examineRequests({ log, queue, groups });
    return await show(
      findings,
      `the event store, Redis and ${groups.length} ${groups.length === 1 ? "context" : "contexts"}`,
    );
  });
}

/** `outbox-relay requests list`. */
export function listCommand(output: Form): Promise<number> {
  return withTools(async ({ queue, requests }) => {
    const rows = await Promise.all(
      requests.groups.map(async (group) => ({
        context: contextName(group),
        namespace: group.namespace,
        queue: group.queue,
        ...(await queue.standing(group)),
      })),
    );
    if (output === "json") printJson(rows);
    else {
      const head = ["CONTEXT", "CHECKPOINT", "DISPATCHED BY", "WAITING", "ACTIVE", "DELAYED", "FAILED", "DEAD"];
      const lines = rows.map(({ context, dead, holder, jobs, position }) => [
        ...[context, position ?? "not started", holder ?? "-"],
        ...["waiting", "active", "delayed", "failed"].map((state) => jobs[state] ?? 0),
        dead,
      ]);
      process.stdout.write(textTable(head, lines));
    }
    return EXIT.ok;
  });
}

interface SeekFlags {
  readonly to: string;
  readonly yes?: boolean;
  readonly output: Form;
}

/** `outbox-relay requests seek`. */
export function seekCommand(context: string, { output, to, yes = false }: SeekFlags): Promise<number> {
  return withTools(async (tools) => {
    const group = groupOf(tools, context);
    const { position: from } = await tools.queue.standing(group);
    const position = await positionOf(tools, group, to);
    if (yes) await tools.queue.seek(group, position);
    if (output === "json") printJson({ context, from, to: position, isDone: yes });
    else {
      const [did, note] = yes ? ["continues", ""] : ["would continue", "Nothing was changed. Add --yes to apply it.\n"];
      process.stdout.write(`${context} ${did} at ${position} instead of ${from ?? "its beginning"}.\n${note}`);
      process.stdout.write("Events that were dispatched within REQUEST_MARKER_TTL are not dispatched again.\n");
    }
    return EXIT.ok;
  });
}

/** Accepts a checkpoint as it is, since only the log can interpret it, or reads `beginning`, `now` or a time. */
async function positionOf({ log }: Tools, group: RequestGroup, to: string): Promise<string> {
  if (/^\d+(?:\/\d+)?$/.test(to)) return to;
  const start = logStart(to, (why) => {
    throw new Exit(EXIT.usage, [`--to ${why}, or a checkpoint such as 1234/1234`]);
  });
  if (!(start instanceof Date)) return start ?? "beginning";
  const show = (count: number) => {
    if (process.stderr.isTTY) process.stderr.write(`\r${count} events scanned`);
  };
  const position = await positionAt(log, streamPrefix(group), start.getTime(), show);
  if (process.stderr.isTTY) process.stderr.write("\n");
  return position;
}

interface ListFlags {
  readonly limit: number;
  readonly output: Form;
}

/** `outbox-relay requests dead`. */
export function deadCommand(context: string, { limit, output }: ListFlags): Promise<number> {
  return withTools(async (tools) => {
    const dead = await tools.queue.deadRequests(groupOf(tools, context), limit);
    if (output === "json") printJson(dead);
    else if (dead.length === 0) process.stdout.write(`${context} has no dead requests.\n`);
    else {
      const rows = dead.map(({ at, eventId, reason, stream, type }) => [eventId, type, stream, at, oneLine(reason)]);
      process.stdout.write(textTable(["EVENT", "TYPE", "STREAM", "SINCE", "REASON"], rows));
    }
    return EXIT.ok;
  });
}

/** `outbox-relay requests replay`. */
export function replayCommand(context: string, ids: readonly string[], output: Form): Promise<number> {
  return withTools(async (tools) => {
    const group = groupOf(tools, context);
    const dead = await tools.queue.deadRequests(group, REPLAY_MAX);
    const selected = ids.length === 0 ? dead : dead.filter(({ eventId }) => ids.includes(eventId));
    const unknown = ids.filter((id) => !selected.some(({ eventId }) => eventId === id));
    if (unknown.length > 0)
      throw new Exit(EXIT.notFound, [`no dead request with id ${unknown.join(", ")} in ${context}`]);
    const replayed = await replayDead(tools.log, tools.queue, group, selected, Date.now());
    if (output === "json") printJson(replayed);
    else {
      for (const { eventId, outcome, reason } of replayed) {
        process.stdout.write(`${eventId} ${outcome}${reason === null ? "" : `: ${reason}`}\n`);
      }
      if (replayed.length === 0) process.stdout.write(`${context} has no dead requests.\n`);
    }
    return replayed.some(({ outcome }) => outcome === "still dead" || outcome === "gone") ? EXIT.partly : EXIT.ok;
  });
}

/** `outbox-relay requests discard`. */
export function discardCommand(context: string, ids: readonly string[], output: Form): Promise<number> {
  return withTools(async (tools) => {
    const count = await tools.queue.discard(groupOf(tools, context), ids);
    if (output === "json") printJson({ context, discarded: count, asked: ids.length });
    else process.stdout.write(`${count} of ${ids.length} discarded\n`);
    return count === ids.length ? EXIT.ok : EXIT.notFound;
  });
}
