import { closeSync, fstatSync, ftruncateSync, openSync, readFileSync, readSync } from "node:fs";
import { type FaultKind, takesEffect } from "./sink-faults.ts";
import type { SinkEvent } from "./sink-wire.ts";

export type Arrival = SinkEvent & {
  /** The sink's wall clock. */
  readonly atMs: number;
};

/** Every time an event reached the sink, with or without effect. */
export type Attempt = Arrival & { readonly fault: FaultKind | null; readonly taken: boolean };

export function formatAttempt(event: SinkEvent, atMs: number, fault: FaultKind | null): string {
  const { id, topic, key, headers, payload } = event;
  return `${JSON.stringify([atMs, fault, id, topic, key, headers, payload.toString("base64")])}\n`;
}

function parseAttempt(line: string): Attempt {
  const [atMs, fault, id, topic, key, headers, payload] = JSON.parse(line);
  return { id, topic, key, headers, payload: Buffer.from(payload, "base64"), atMs, fault, taken: takesEffect(fault) };
}

/** Opens the log for appending, without the half line that a kill in the middle of a write may have left. */
export function openLog(file: string): number {
  const log = openSync(file, "a+");
  const { size } = fstatSync(log);
  const last = Buffer.alloc(1);
  if (size > 0 && readSync(log, last, 0, 1, size - 1) === 1 && last.toString() !== "\n") {
    ftruncateSync(log, readFileSync(file).lastIndexOf("\n") + 1);
  }
  return log;
}

/** Each call returns the attempts logged since the last one. */
export function createLogReader(file: string): () => Attempt[] {
  let readBytes = 0;
  return () => {
    const log = openSync(file, "a+");
    try {
      const fresh = Buffer.alloc(Math.max(0, fstatSync(log).size - readBytes));
      const end = fresh.subarray(0, readSync(log, fresh, 0, fresh.length, readBytes)).lastIndexOf("\n") + 1;
      readBytes += end;
      const text = fresh.toString("utf8", 0, end);
      return text.split("\n").slice(0, -1).map(parseAttempt);
    } finally {
      closeSync(log);
    }
  };
}
