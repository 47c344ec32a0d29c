import { configFromEnvironment, type ServiceConfig } from "../config/service-config.ts";
import { reasonOf } from "../core/errors.ts";
import { type HttpFaces, type HttpServer, startHttpServer } from "../http/server.ts";
import { EXIT } from "./exit.ts";
import { Log } from "./log.ts";
import { runOnce } from "./run-once.ts";
import { Service } from "./service.ts";
import { Signals } from "./signals.ts";

interface RunOptions {
  readonly once?: boolean;
  readonly migrate?: boolean;
}

/** `outbox-relay run`. Returns the exit code; throws what keeps it from running at all. */
export async function runCommand({ once = false, migrate = false }: RunOptions): Promise<number> {
  const config = configFromEnvironment(process.env);
  const log = new Log(config);
  const { logger } = log;
  for (const warning of config.warnings) logger.warn(warning);
  const faces = new CurrentService(new Service({ config, logger, migrate, once }));
  const signals = new Signals();
  let http: HttpServer | null = null;
  try {
    if (once) return await drain(faces.current, signals);
    http = await startHttpServer(faces, config.http);
    logger.info({ address: http.address }, "listening");
    const signal = await serve(faces, signals, log, (next) => new Service({ config: next, logger, migrate, once }));
    logger.info({ signal }, "stopping: what is in flight is finished");
    return EXIT.ok;
  } catch (error) {
    logger.fatal({ reason: reasonOf(error) }, "the service cannot go on");
    throw error;
  } finally {
    await inTime(config.shutdownMs, async () => {
      await faces.current.stop();
      await http?.close();
    });
    signals.stop();
    logger.info("stopped");
    await log.flush();
  }
}

async function drain(service: Service, signals: Signals): Promise<number> {
  const work = runOnce(service);
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
  open: (config: ServiceConfig) => Service,
): Promise<string> {
  for (;;) {
    const work = faces.current.run();
    work.catch(() => {});
    for (;;) {
      const ended = await Promise.race([work, signals.toEnd, signals.nextReload()]);
      if (typeof ended === "string" && ended !== "SIGHUP") return ended;
      try {
        const next = configFromEnvironment(process.env);
        log.hide(next.secrets);
        log.logger.info("reload: the settings were read again");
        await faces.current.stop();
        faces.current = open(next);
        break;
      } catch (error) {
        log.logger.error({ reason: reasonOf(error) }, "reload: the settings cannot be used; the old ones stay");
      }
    }
  }
}

/** What the HTTP server shows is the service of the moment. */
class CurrentService implements HttpFaces {
  current: Service;

  constructor(service: Service) {
    this.current = service;
  }

  health = () => this.current.view.health();
  readiness = () => this.current.view.readiness();
  metrics = () => this.current.view.metrics();
}

/** Whatever hangs is left behind: nothing is lost by it, another instance finds it as after a crash. */
async function inTime(ms: number, work: () => Promise<void>): Promise<void> {
  const { promise: over, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms * 0.95);
  await Promise.race([work(), over]);
  clearTimeout(timer);
}
