import { createInterface } from "node:readline";
import type { Readable } from "node:stream";

/** A line of the relay's log. */
export interface RelayLine {
  readonly level: number;
  readonly message: string;
  /** The technical event, if the line reports one. */
  readonly event?: string;
  readonly [field: string]: unknown;
}

/** Parses the lines of the relay's log. Other output, such as events on standard output, goes to `other`. */
export function readRelayLog(stream: Readable, onLine: (line: RelayLine) => void, other: (text: string) => void): void {
  createInterface({ input: stream }).on("line", (text) => {
    const line = parsed(text);
    if (line === null) other(text);
    else onLine(line);
  });
}

function parsed(text: string): RelayLine | null {
  if (!text.startsWith('{"level":')) return null;
  try {
    return JSON.parse(text) as RelayLine;
  } catch {
    return null;
  }
}
