import { pino } from "pino";
import { systemClock } from "../src/core/clock.ts";
import type { Publisher } from "../src/ports/publisher.ts";
import type { QueueSource } from "../src/ports/queue-store.ts";
import type { Relay } from "../src/relay/relay.ts";
import { BacklogWatch, countBacklogs, type WatchedSource } from "../src/telemetry/backlog-watch.ts";
import { Condition } from "../src/telemetry/condition.ts";
import { logEvents } from "../src/telemetry/logs/log-events.ts";
import { createLogger } from "../src/telemetry/logs/logger.ts";
import { redactor } from "../src/telemetry/logs/redaction.ts";
import { Metrics, type PipelineEnds } from "../src/telemetry/metrics/metrics.ts";
import { PushTally } from "../src/telemetry/push-tally.ts";
import { openTracing } from "../src/telemetry/tracing/tracing.ts";
import type { RelayTelemetry } from "./relay-order.ts";

/** A scraper comes more often than usual: the drain is short. */
const SCRAPE_EVERY_MS = 5_000;

/** Metrics, logs at the default level and tracing around a relay, put together as the service does it. */
export async function openTelemetry({ tracesUrl, ratio }: RelayTelemetry) {
  const pushes = new PushTally();
  const condition = new Condition(systemClock);
  const pipelines: PipelineEnds[] = [];
  const watched: WatchedSource[] = [];
  let backlog: BacklogWatch | null = null;
  const metrics = new Metrics({
    version: "bench",
    condition,
    backlog: async () => (await backlog?.figures(1_000)) ?? [],
    pipelines: () => pipelines,
    pushes,
  });
  const stream = pino.destination({ dest: "/dev/null", sync: false });
  const redact = redactor(["a-password", "another-password"]);
  const about = { service: "bench", version: "bench" };
  const logger = createLogger({ ...about, level: "info", redact, stream });
  const shared = { tally: pushes, logger, clock: systemClock, redact };
  const tracing = await openTracing({
    ...about,
    instance: "bench",
    endpoint: tracesUrl,
    headers: {},
    ratio,
    ...shared,
  });
  let scraper: NodeJS.Timeout | undefined;
  return {
    source: (source: QueueSource, destination: string): QueueSource => ({
      ...source,
      pipeline: (spec) => {
        const store = source.pipeline(spec);
        const ends = { pipeline: spec.name, source: source.name, destination };
        pipelines.push(ends);
        const count = () => countBacklogs({}, new Map([[spec.name, () => store.backlog()]]));
        watched.push({ source: source.name, schema: "public", pipelines: [ends], count });
        return store;
      },
    }),
    publisher: (publisher: Publisher) => tracing.watch(publisher, "kafka"),
    listen(relay: Relay) {
      backlog = new BacklogWatch(watched, systemClock);
      condition.listen(relay);
      metrics.listen(relay, pipelines);
      logEvents(relay, { logger, clock: systemClock, events: "failures" });
      scraper = setInterval(() => void metrics.text(), SCRAPE_EVERY_MS);
    },
    async stop() {
      clearInterval(scraper);
      metrics.stop();
      await tracing.stop();
    },
  };
}
