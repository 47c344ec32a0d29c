import type { ServiceConfig } from "../config/service-config.ts";
import { systemClock } from "../core/clock.ts";
import { branchedStream, lowestLevel } from "../telemetry/logs/log-stream.ts";
import { createLogger, type Logger } from "../telemetry/logs/logger.ts";
import { redactor } from "../telemetry/logs/redaction.ts";
import { LokiPush } from "../telemetry/push/loki-push.ts";
import { PushTally } from "../telemetry/push-tally.ts";
import { type LogOutput, logOutput } from "./log-output.ts";
import { VERSION } from "./version.ts";

const FLUSH_MS = 500;

type LogConfig = Pick<ServiceConfig, "log" | "secrets" | "service" | "telemetry"> & {
  readonly destinations: readonly { readonly usesStdout?: boolean }[];
};

interface LevelledOutput {
  level: ServiceConfig["log"]["level"];
  readonly write: (line: string, level: string) => void;
}

/**
 * The service's log: to standard output (to standard error if the events themselves go to standard output), and to
 * Loki.
 */
export class Log {
  readonly logger: Logger;
  /** Counts this process's pushes: log lines, metrics, traces and notifications. */
  readonly pushes = new PushTally();
  readonly #output: LogOutput;
  readonly #loki: LokiPush | null;
  readonly #secrets = new Set<string>();
  readonly #own: LevelledOutput = { level: "info", write: (line) => void this.#output.stream.write(line) };
  readonly #pushed: LevelledOutput = { level: "silent", write: (line, level) => this.#loki?.add(level, line) };
  #redact = (line: string) => line;

  constructor({ destinations, log, secrets, service, telemetry }: LogConfig) {
    this.#output = logOutput(destinations.some(({ usesStdout }) => usesStdout) ? 2 : 1);
    this.#loki = telemetry.loki === null ? null : this.#openLoki(telemetry.loki, service);
    const redact = (line: string) => this.#redact(line);
    const stream = this.#loki === null ? this.#output.stream : branchedStream([this.#own, this.#pushed]);
    this.logger = createLogger({ service, version: VERSION, level: log.level, redact, stream });
    this.setLevels({ log, telemetry });
    this.addSecrets(secrets);
  }

  /** Sets the levels that are written and pushed from now on. */
  setLevels({ log, telemetry }: Pick<ServiceConfig, "log" | "telemetry">): void {
    this.#own.level = log.level;
    this.#pushed.level = this.#loki === null ? "silent" : (telemetry.loki?.level ?? "silent");
    this.logger.level = lowestLevel([this.#own.level, this.#pushed.level]);
  }

  /** Redacts these too from now on. Earlier secrets stay secret. */
  addSecrets(secrets: readonly string[]): void {
    for (const secret of secrets) this.#secrets.add(secret);
    this.#redact = redactor([...this.#secrets]);
  }

  /** Resolves when all lines are written and pushed, or the time is up. Call it last. */
  async flush(): Promise<void> {
    const { promise: written, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, FLUSH_MS);
    void this.#output.written().then(resolve);
    await Promise.all([written, this.#loki?.stop()]);
    clearTimeout(timer);
  }

  #openLoki({ url, basicAuth }: NonNullable<ServiceConfig["telemetry"]["loki"]>, service: string): LokiPush {
    const warn = (reason: string, repeated: number) =>
      this.logger.warn({ receiver: "loki", reason, repeated }, "log lines could not be pushed");
    return new LokiPush({ url, basicAuth, service, tally: this.pushes, clock: systemClock, warn });
  }
}
