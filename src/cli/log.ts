import { pino } from "pino";
import type { ServiceConfig } from "../config/service-config.ts";
import { createLogger, type Logger } from "../telemetry/logger.ts";
import { redactor } from "../telemetry/redaction.ts";
import { VERSION } from "./version.ts";

const FLUSH_MS = 500;

/** Lines go to standard output, unless the events themselves do. */
export class Log {
  readonly logger: Logger;
  readonly #stream: ReturnType<typeof pino.destination>;
  readonly #secrets = new Set<string>();
  #redact = (line: string) => line;

  constructor({ destination, log, secrets, service }: ServiceConfig) {
    this.#stream = pino.destination({ dest: destination.kind === "stdout" ? 2 : 1, sync: false });
    const redact = (line: string) => this.#redact(line);
    this.logger = createLogger({ service, version: VERSION, level: log.level, redact, stream: this.#stream });
    this.hide(secrets);
  }

  /** From now on; what was a secret before stays one. */
  hide(secrets: readonly string[]): void {
    for (const secret of secrets) this.#secrets.add(secret);
    this.#redact = redactor([...this.#secrets]);
  }

  /** Resolves when all lines are written, or nobody reads them any more. */
  async flush(): Promise<void> {
    const { promise: written, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, FLUSH_MS);
    this.#stream.flush(() => resolve());
    await written;
    clearTimeout(timer);
  }
}
