import type { ServiceConfig } from "../config/service-config.ts";
import { systemClock } from "../core/clock.ts";
import { branchedStream, lowestLevel } from "../telemetry/log-stream.ts";
import { createLogger, type Logger } from "../telemetry/logger.ts";
import { LokiPush } from "../telemetry/push/loki-push.ts";
import { PushTally } from "../telemetry/push-tally.ts";
import { redactor } from "../telemetry/redaction.ts";
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

/** Lines go to standard output, unless the events themselves do, and to Loki where that is set. */
export class Log {
  readonly logger: Logger;
  /** How the pushes of this process went, those of others included. */
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
    this.listenFrom({ log, telemetry });
    this.hide(secrets);
  }

  /** The levels that are written and pushed from now on. */
  listenFrom({ log, telemetry }: Pick<ServiceConfig, "log" | "telemetry">): void {
    this.#own.level = log.level;
    this.#pushed.level = this.#loki === null ? "silent" : (telemetry.loki?.level ?? "silent");
    this.logger.level = lowestLevel([this.#own.level, this.#pushed.level]);
  }

  /** From now on; what was a secret before stays one. */
  hide(secrets: readonly string[]): void {
    for (const secret of secrets) this.#secrets.add(secret);
    this.#redact = redactor([...this.#secrets]);
  }

  /** Resolves when all lines are written and pushed, or nobody takes them any more. The last that is asked of it. */
  async flush(): Promise<void> {
    const { promise: written, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, FLUSH_MS);
    void this.#output.written().then(resolve);
    await Promise.all([written, this.#loki?.stop()]);
    clearTimeout(timer);
  }

  #openLoki({ url, basicAuth }: NonNullable<ServiceConfig["telemetry"]["loki"]>, service: string): LokiPush {
    const warn = (reason: string, repeated: number) =>
      this.logger.warn({ receiver: "loki", reason, repeated }, "the log lines could not be pushed");
    return new LokiPush({ url, basicAuth, service, tally: this.pushes, clock: systemClock, warn });
  }
}
