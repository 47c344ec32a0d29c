import { type DestinationStream, type LevelWithSilent, type Logger, pino, stdTimeFunctions } from "pino";

export type { Logger } from "pino";

interface LoggerOptions {
  readonly service: string;
  readonly version: string;
  readonly level: LevelWithSilent;
  /** Receives every line before it is written, to remove secrets. */
  readonly redact: (line: string) => string;
  readonly stream: DestinationStream;
}

/** A logger of JSON lines with the labels that log stores index: level, service, version. */
export function createLogger({ service, version, level, redact, stream }: LoggerOptions): Logger {
  return pino(
    {
      level,
      base: { service, version },
      messageKey: "message",
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      hooks: { streamWrite: redact },
    },
    stream,
  );
}
