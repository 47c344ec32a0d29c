import { effectiveSettings } from "../../config/reading/effective-settings.ts";
import type { ServiceConfig } from "../../config/service-config.ts";
import { systemClock } from "../../core/clock.ts";
import { reasonOf, stackOf } from "../../core/errors.ts";
import { accessText } from "../../http/guard.ts";
import { type HttpFaces, type HttpServer, startHttpServer, startMetricsServer } from "../../http/server.ts";
import { EXIT } from "../../service/exit.ts";
import { Log } from "../../service/log.ts";
import { CurrentSettings } from "../../service/reload.ts";
import { logFailedRequests, logRefusedRequests } from "../../service/request-errors.ts";
import { RequestService } from "../../service/request-service.ts";
import type { RunningService } from "../../service/running-service.ts";
import { Service } from "../../service/service.ts";
import { Signals, withinShutdownTime } from "../../service/signals.ts";
import { VERSION } from "../../service/version.ts";
import { OverviewHistory } from "../../telemetry/metrics/overview-history.ts";
import { configSources } from "../config-sources.ts";
import type { Form } from "../terminal/output.ts";

interface RunOptions {
  readonly once?: boolean;
  readonly migrate?: boolean;
  readonly output?: Form;
  /** Settings that the starting program overrides. */
  readonly adapt?: (config: ServiceConfig) => ServiceConfig;
}

const unchanged = (config: ServiceConfig) => config;

/** `outbox-relay run`. Returns the exit code; throws when it cannot start. */
export async function runCommand(options: RunOptions): Promise<number> {
  const { once = false, migrate = false, output = "text", adapt = unchanged } = options;
  const settings = await CurrentSettings.load(configSources());
  const config = adapt(settings.config);
  const log = new Log(config);
  const { logger, pushes } = log;
  for (const warning of config.warnings) logger.warn(warning);
  const history = new OverviewHistory(systemClock);
  const open = (of: ServiceConfig): RunningService =>
    of.requests === null
      ? new Service({ config: of, logger, pushes, migrate, once, history })
      : new RequestService({ config: of, requests: of.requests, logger, pushes, history });
  const faces = new CurrentService(open(config), settings);
  const signals = new Signals();
  const servers: HttpServer[] = [];
  try {
    if (once) return await drain(faces.current, signals, output);
    const about = {
      service: config.service,
      version: VERSION,
      failed: logFailedRequests(logger),
      closed: logRefusedRequests(logger),
    };
    servers.push(await startHttpServer(faces, { ...config.http, ...about }));
    const { metricsPort } = config.telemetry;
    if (metricsPort !== null) servers.push(await startMetricsServer(faces, { ...config.http, port: metricsPort }));
    for (const { address } of servers) logger.info({ address }, "listening");
    logger.info(accessText(config.http.host, config.access));
    const signal = await serve(faces, signals, log, settings, history, (next) => open(adapt(next)));
    logger.info({ signal }, "stopping: finishing events in flight");
    return EXIT.ok;
  } catch (error) {
    logger.fatal({ reason: reasonOf(error), stack: stackOf(error) }, "the service cannot continue");
    throw error;
  } finally {
    await withinShutdownTime(settings.config.shutdownMs, async () => {
      await faces.current.stop();
      await Promise.all(servers.map((server) => server.close()));
    });
    signals.stop();
    history.stop();
    logger.info("stopped");
    await log.flush();
  }
}

/** Prints the result to standard error: standard output belongs to the log, or to the events. */
async function drain(service: RunningService, signals: Signals, output: Form): Promise<number> {
  const work = service.once();
  work.catch(() => {});
  const ended = await Promise.race([work, signals.toEnd]);
  const { code, line } =
    typeof ended === "string" ? { code: EXIT.partly, line: "stopped before all events were delivered" } : ended;
  process.stderr.write(`${output === "json" ? JSON.stringify({ exitCode: code, result: line }) : line}\n`);
  return code;
}

/** Runs until a signal ends it. A failed reload changes nothing. */
async function serve(
  faces: CurrentService,
  signals: Signals,
  log: Log,
  settings: CurrentSettings,
  history: OverviewHistory,
  open: (config: ServiceConfig) => RunningService,
): Promise<string> {
  for (;;) {
    const work = faces.current.run();
    work.catch(() => {});
    for (;;) {
      const ended = await Promise.race([work, signals.toEnd, signals.nextReload()]);
      if (typeof ended === "string" && ended !== "SIGHUP") return ended;
      const next = await reloaded(settings, log);
      if (next === null) continue;
      await faces.current.stop();
      history.markers.note("settings reloaded");
      faces.current = open(next);
      break;
    }
  }
}

/** Null when the new settings are invalid: then the old ones stay in force. */
async function reloaded(settings: CurrentSettings, log: Log): Promise<ServiceConfig | null> {
  const { logger } = log;
  try {
    const { config, changed, kept } = await settings.reload();
    log.addSecrets(config.secrets);
    logger.info({ changed }, "reload: settings applied");
    if (kept.length > 0)
      logger.warn({ kept }, `reload: ${kept.join(", ")} need a restart; the old values stay in force`);
    for (const warning of config.warnings) logger.warn(warning);
    log.setLevels(config);
    return config;
  } catch (error) {
    logger.error({ reason: reasonOf(error) }, "reload: the settings are invalid; the old ones stay in force");
    return null;
  }
}

/** The HTTP server shows the current service, which a reload replaces. */
class CurrentService implements HttpFaces {
  current: RunningService;
  readonly #settings: CurrentSettings;

  constructor(service: RunningService, settings: CurrentSettings) {
    this.current = service;
    this.#settings = settings;
  }

  health = () => this.current.view.health();
  readiness = () => this.current.view.readiness();
  overview = () => this.current.view.overview();
  series = () => this.current.view.series();
  logs = () => this.current.view.logs();
  findings = () => this.current.view.findings();
  settings = () => effectiveSettings(this.#settings.read);
  metrics = (accept?: string) => this.current.view.metrics(accept);
  operations = () => this.current.operations();
  access = () => this.current.access;
  redact = (text: string) => this.current.view.redact(text);
}
