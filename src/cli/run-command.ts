import { effectiveSettings } from "../config/effective-settings.ts";
import type { ServiceConfig } from "../config/service-config.ts";
import { systemClock } from "../core/clock.ts";
import { reasonOf, stackOf } from "../core/errors.ts";
import { accessText } from "../http/guard.ts";
import { type HttpFaces, type HttpServer, startHttpServer, startMetricsServer } from "../http/server.ts";
import { OverviewHistory } from "../telemetry/overview-history.ts";
import { answerFailed, closedTo } from "./answer-failed.ts";
import { EXIT } from "./exit.ts";
import { inTime } from "./in-time.ts";
import { Log } from "./log.ts";
import { CurrentSettings } from "./reload.ts";
import { RequestService } from "./request-service.ts";
import type { RunningService } from "./running-service.ts";
import { Service } from "./service.ts";
import { Signals } from "./signals.ts";
import { VERSION } from "./version.ts";

interface RunOptions {
  readonly once?: boolean;
  readonly migrate?: boolean;
  /** What the program that starts it knows better than the settings. */
  readonly adapt?: (config: ServiceConfig) => ServiceConfig;
}

const asItIs = (config: ServiceConfig) => config;

/** `outbox-relay run`. Returns the exit code; throws what keeps it from running at all. */
export async function runCommand({ once = false, migrate = false, adapt = asItIs }: RunOptions): Promise<number> {
  const settings = await CurrentSettings.load();
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
    if (once) return await drain(faces.current, signals);
    const about = {
      service: config.service,
      version: VERSION,
      failed: answerFailed(logger),
      closed: closedTo(logger),
    };
    servers.push(await startHttpServer(faces, { ...config.http, ...about }));
    const { metricsPort } = config.telemetry;
    if (metricsPort !== null) servers.push(await startMetricsServer(faces, { ...config.http, port: metricsPort }));
    for (const { address } of servers) logger.info({ address }, "listening");
    logger.info(accessText(config.http.host, config.access));
    const signal = await serve(faces, signals, log, settings, history, (next) => open(adapt(next)));
    logger.info({ signal }, "stopping: what is in flight is finished");
    return EXIT.ok;
  } catch (error) {
    logger.fatal({ reason: reasonOf(error), stack: stackOf(error) }, "the service cannot go on");
    throw error;
  } finally {
    await inTime(settings.config.shutdownMs, async () => {
      await faces.current.stop();
      await Promise.all(servers.map((server) => server.close()));
    });
    signals.stop();
    logger.info("stopped");
    await log.flush();
  }
}

async function drain(service: RunningService, signals: Signals): Promise<number> {
  const work = service.once();
  work.catch(() => {});
  const ended = await Promise.race([work, signals.toEnd]);
  const { code, line } = typeof ended === "string" ? { code: EXIT.partly, line: "stopped before the end" } : ended;
  process.stderr.write(`${line}\n`);
  return code;
}

/** Runs until a signal ends it. A reload that fails leaves everything as it is. */
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
      history.markers.note("the settings were read again");
      faces.current = open(next);
      break;
    }
  }
}

/** Null when the settings cannot be used: then the old ones stay. */
async function reloaded(settings: CurrentSettings, log: Log): Promise<ServiceConfig | null> {
  const { logger } = log;
  try {
    const { config, changed, kept } = await settings.reload();
    log.hide(config.secrets);
    logger.info({ changed }, "reload: the settings were read again");
    if (kept.length > 0) logger.warn({ kept }, `reload: ${kept.join(", ")} need a restart; the old values stay`);
    for (const warning of config.warnings) logger.warn(warning);
    log.listenFrom(config);
    return config;
  } catch (error) {
    logger.error({ reason: reasonOf(error) }, "reload: the settings cannot be used; the old ones stay");
    return null;
  }
}

/** What the HTTP server shows is the service of the moment. */
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
