import { type DynamoDbRunConfig, loadDynamoDbRunConfig } from "../config/dynamodb-config.ts";
import { systemClock } from "../core/clock.ts";
import { reasonOf, stackOf } from "../core/errors.ts";
import { type HttpServer, startHttpServer } from "../http/server.ts";
import type { IntentHandler } from "../lambda/intent-handler.ts";
import type { ChangeStream } from "../lambda/local/change-stream.ts";
import { intentBacklog } from "../lambda/local/intent-backlog.ts";
import { lambdaContext } from "../lambda/local/lambda-context.ts";
import { LocalRunner } from "../lambda/local/local-runner.ts";
import { searchTable } from "../lambda/local/search-table.ts";
import { logEvents } from "../telemetry/log-events.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { PipelineEnds } from "../telemetry/metrics.ts";
import { answerFailed } from "./answer-failed.ts";
import { configSources } from "./config-sources.ts";
import { DynamoDbParts } from "./dynamodb-parts.ts";
import { createMissing } from "./dynamodb-tables.ts";
import { DynamoDbView } from "./dynamodb-view.ts";
import { EXIT } from "./exit.ts";
import { inTime } from "./in-time.ts";
import { Log } from "./log.ts";
import { Signals } from "./signals.ts";
import { VERSION } from "./version.ts";

/** `outbox-relay dynamodb run`. Returns the exit code; throws what keeps it from running at all. */
export async function dynamoDbRun({ create = false }: { readonly create?: boolean }): Promise<number> {
  const config = await loadDynamoDbRunConfig(configSources());
  const log = new Log({ ...config, destinations: [{ usesStdout: config.usesStdout }] });
  const { logger } = log;
  for (const warning of config.warnings) logger.warn(warning);
  const parts = new DynamoDbParts(config);
  const flushLogs = logEvents(parts.bus, { logger, clock: systemClock, events: config.log.events });
  const pipelines = pipelinesOf(config);
  const view = new DynamoDbView({
    config,
    events: parts.bus,
    pipelines,
    addresses: parts.handlers.map(({ addresses }) => addresses),
    backlog: (type) => intentBacklog(parts.link, parts.outbox, type),
    ping: async () => void (await parts.stream()),
    pushes: log.pushes,
  });
  const runner = runnerOf(parts, view, logger);
  const signals = new Signals();
  const servers: HttpServer[] = [];
  try {
    const about = { service: config.service, version: VERSION, failed: answerFailed(logger) };
    servers.push(await startHttpServer(view, { ...config.http, ...about }));
    for (const { address } of servers) logger.info({ address }, "listening");
    if (create) await createMissing(config, parts.link);
    logger.info({ table: config.table, relays: parts.handlers.map(({ type }) => type) }, "reading the stream");
    runner.start();
    const signal = await signals.toEnd;
    logger.info({ signal }, "stopping: what is in flight is finished");
    return EXIT.ok;
  } catch (error) {
    logger.fatal({ reason: reasonOf(error), stack: stackOf(error) }, "the service cannot go on");
    throw error;
  } finally {
    await inTime(config.shutdownMs, async () => {
      await runner.stop();
      await Promise.all([parts.close(), ...servers.map((server) => server.close())]);
    });
    flushLogs();
    view.stop();
    signals.stop();
    logger.info("stopped");
    await log.flush();
  }
}

function runnerOf(parts: DynamoDbParts, view: DynamoDbView, logger: Logger): LocalRunner {
  const { bus, checkpoints, config, link, self } = parts;
  const search = async (handler: IntentHandler, { arn }: ChangeStream, signal: AbortSignal) => {
    const context = () => lambdaContext(systemClock, config.timing.invocationMs);
    const options = { link, table: config.table, streamArn: arn, context, signal };
    const { failed, found, looked } = await searchTable([handler], options);
    logger.info({ type: handler.type, looked, found }, "the table was searched: from now on the stream tells");
    if (failed > 0) throw new Error(`${failed} intents of the table could not be relayed yet`);
  };
  return new LocalRunner({
    table: config.table,
    stream: () => parts.stream(),
    checkpoints,
    self,
    handlers: parts.handlers,
    knownTypes: config.knownTypes,
    search,
    isDue: async (type) => (await parts.outbox.due(type, new Date().toISOString(), 1)).length > 0,
    clock: systemClock,
    events: bus,
    batchSize: config.batchSize,
    timing: config.timing,
    answered: () => view.answered(),
  });
}

/** Named as the runner names them. */
function pipelinesOf({ relays, table }: DynamoDbRunConfig): readonly PipelineEnds[] {
  return relays.map(({ name, relay: { target, type } }) => ({
    pipeline: `${table}/${type}`,
    source: `${table}/${type}`,
    destination: "url" in target ? name : target.destination,
  }));
}
