import { type DynamoDbRunConfig, loadDynamoDbRunConfig } from "../../config/sources/dynamodb-config.ts";
import { systemClock } from "../../core/clock.ts";
import { reasonOf, stackOf } from "../../core/errors.ts";
import type { ChangeStream } from "../../dynamodb-runner/change-stream.ts";
import { intentBacklog } from "../../dynamodb-runner/intent-backlog.ts";
import { lambdaContext } from "../../dynamodb-runner/invocation.ts";
import { LocalRunner } from "../../dynamodb-runner/local-runner.ts";
import { searchTable } from "../../dynamodb-runner/search-table.ts";
import { type HttpServer, startHttpServer } from "../../http/server.ts";
import type { IntentHandler } from "../../lambda/intent-handler.ts";
import { DynamoDbParts } from "../../service/dynamodb-parts.ts";
import { DynamoDbView } from "../../service/dynamodb-view.ts";
import { EXIT } from "../../service/exit.ts";
import { Log } from "../../service/log.ts";
import { logFailedRequests } from "../../service/request-errors.ts";
import { Signals, withinShutdownTime } from "../../service/signals.ts";
import { VERSION } from "../../service/version.ts";
import { logEvents } from "../../telemetry/logs/log-events.ts";
import type { Logger } from "../../telemetry/logs/logger.ts";
import type { PipelineEnds } from "../../telemetry/metrics/metrics.ts";
import { configSources } from "../config-sources.ts";
import { createMissing } from "./dynamodb-tables.ts";

/** `outbox-relay dynamodb run`. Returns the exit code; throws when it cannot start. */
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
    const about = { service: config.service, version: VERSION, failed: logFailedRequests(logger) };
    servers.push(await startHttpServer(view, { ...config.http, ...about }));
    for (const { address } of servers) logger.info({ address }, "listening");
    if (create) await createMissing(config, parts.link);
    logger.info({ table: config.table, relays: parts.handlers.map(({ type }) => type) }, "reading the stream");
    runner.start();
    const signal = await signals.toEnd;
    logger.info({ signal }, "stopping: finishing events in flight");
    return EXIT.ok;
  } catch (error) {
    logger.fatal({ reason: reasonOf(error), stack: stackOf(error) }, "the service cannot continue");
    throw error;
  } finally {
    await withinShutdownTime(config.shutdownMs, async () => {
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
    logger.info({ type: handler.type, looked, found }, "the table was searched; reading the stream from now on");
    if (failed > 0) throw new Error(`${failed} intents in the table could not be relayed yet`);
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

/** Pipelines with the names that the runner uses. */
function pipelinesOf({ relays, table }: DynamoDbRunConfig): readonly PipelineEnds[] {
  return relays.map(({ name, relay: { target, type } }) => ({
    pipeline: `${table}/${type}`,
    source: `${table}/${type}`,
    destination: "url" in target ? name : target.destination,
  }));
}
