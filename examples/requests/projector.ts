import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { kurrentdbLog, type LoggedEvent, type LogItem } from "../../src/kurrentdb.ts"; // in your project: "outbox-relay/kurrentdb"
import { CONTEXT } from "./payouts.ts";

const PAGE = 100;
const POSITION = `${CONTEXT}.projector.checkpoint`;
const TOTALS = `${CONTEXT}:v1:totals`;
const stateOf = (tenant: string, id: string) => `${CONTEXT}:v1:{${tenant}}:request:${id}`;

const { KURRENTDB_URL = "", METRICS_PORT, REDIS_URL = "" } = process.env;
const log = kurrentdbLog({ url: KURRENTDB_URL });
const redis = new Redis(REDIS_URL);
const stopping = new AbortController();
process.once("SIGTERM", () => stopping.abort());

interface Snapshot {
  readonly state: "requested" | "retrying" | "failed" | "completed";
  readonly [field: string]: string | number;
}

/** What an event makes of its request; null for events of others. */
function snapshotOf({ createdMs, data, type }: LoggedEvent): Snapshot | null {
  const { attempt = 0, final, reason = "", result } = data as Record<string, never>;
  const at = new Date(createdMs).toISOString();
  if (type === "PayoutCreated.v1") return { state: "requested", at };
  if (type === "PayoutFailed.v1") return { state: final ? "failed" : "retrying", at, attempt, reason };
  return type === "PayoutCompleted.v1" ? { state: "completed", at, result: JSON.stringify(result) } : null;
}

/**
 * Snapshots, totals and position change together or not at all, and only if no other projector was faster: so each event
 * counts once, whatever is killed in between.
 */
async function project(page: readonly LogItem[], from: string | null): Promise<string | null> {
  const last = page.findLast((item) => item.kind !== "caught up");
  if (last === undefined) return from;
  await redis.watch(POSITION);
  if ((await redis.get(POSITION)) !== from) throw new Error("another projector is at work");
  const change = redis.multi().set(POSITION, last.position);
  for (const item of page) {
    const snapshot = item.kind === "event" ? snapshotOf(item.event) : null;
    if (item.kind !== "event" || snapshot === null) continue;
    const { data, metadata } = item.event;
    change.hset(stateOf(String(metadata?.tenant), (data as { id: string }).id), snapshot);
    change.hincrby(TOTALS, snapshot.state, 1);
  }
  if ((await change.exec()) === null) throw new Error("another projector is at work");
  return last.position;
}

async function run(signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      let position = await redis.get(POSITION);
      const from = position === null ? ("beginning" as const) : { after: position };
      const pages = log.subscribe({ streamPrefix: `${CONTEXT}.request-`, from, pageMax: PAGE, signal });
      for await (const page of pages) position = await project(page, position);
    } catch (error) {
      // The event store or Redis is away, or another projector is at work: begin where the last change ended.
      console.error(String(error));
      await sleep(1_000, undefined, { signal }).catch(() => {});
    }
  }
}

const metrics = createServer(async (_, response) => {
  const totals = Object.entries(await redis.hgetall(TOTALS)).sort();
  const lines = totals.map(([state, count]) => `payout_requests_total{state="${state}"} ${count}\n`);
  response.setHeader("content-type", "text/plain").end(`# TYPE payout_requests_total counter\n${lines.join("")}`);
});
if (METRICS_PORT !== undefined) metrics.listen(Number(METRICS_PORT), "127.0.0.1");

await run(stopping.signal);
metrics.close();
await log.close();
redis.disconnect();
