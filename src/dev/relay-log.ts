import { createInterface } from "node:readline";
import type { Readable } from "node:stream";

/** A line of the relay's log. */
export interface RelayLine {
  readonly level: number;
  readonly message: string;
  /** The technical event, where the line was made of one. */
  readonly event?: string;
  readonly [field: string]: unknown;
}

/** Hears every line of the log. What is no such line, such as events on standard output, is passed on as it is. */
export function readRelayLog(stream: Readable, heard: (line: RelayLine) => void, other: (text: string) => void): void {
  createInterface({ input: stream }).on("line", (text) => {
    const line = parsed(text);
    if (line === null) other(text);
    else heard(line);
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
