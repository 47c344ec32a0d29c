import { isUtf8 } from "node:buffer";
import type { Writable } from "node:stream";
import { orAborted } from "../../core/clock.ts";
import { RelayError, reasonOf } from "../../core/errors.ts";
import type { Message } from "../../core/event.ts";
import { delivered, retry } from "../../core/outcome.ts";
import type { Publisher, Report } from "../../ports/publisher.ts";

export interface StdoutPublisherOptions {
  readonly name?: string;
  /** Owned by the caller: it is neither ended nor destroyed. */
  readonly stream?: Writable;
}

/** Writes one JSON line per event. */
export function stdoutPublisher(options: StdoutPublisherOptions = {}): Publisher {
  const { name = "stdout", stream = process.stdout } = options;
  // The write callback reports a closed reader (EPIPE); without a listener the error would end the process.
  const ignore = () => {};
  stream.on("error", ignore);
  return {
    name,
    // After one failure every later write fails, too, so the order is kept.
    capabilities: { keyOrderInBatch: true, deduplicates: false },
    publish: (batch, report, signal) => publish(name, stream, batch, report, signal),
    async close() {
      stream.off("error", ignore);
    },
  };
}

async function publish(
  name: string,
  stream: Writable,
  batch: readonly Message[],
  report: Report,
  signal: AbortSignal,
): Promise<void> {
  const givenUp = () => new RelayError("PUBLISH_UNKNOWN", `the write to "${name}" was given up`);
  let written: Promise<void> = Promise.resolve();
  for (const [index, message] of batch.entries()) {
    if (signal.aborted) throw givenUp();
    // Callbacks are called in the order of the writes, so the last one covers all before it.
    written = write(stream, lineOf(message), (error) => {
      if (!signal.aborted) report(index, error === null ? delivered : unwritable(error));
    });
    if (stream.writableNeedDrain) await orAborted(written, signal, givenUp);
  }
  await orAborted(written, signal, givenUp);
}

function write(stream: Writable, line: string, done: (error: Error | null) => void): Promise<void> {
  return new Promise((resolve) => {
    stream.write(line, (error) => {
      done(error ?? null);
      resolve();
    });
  });
}

function unwritable(error: Error) {
  return retry(`the stream cannot be written: ${reasonOf(error)}`, { scope: "destination", error });
}

/** The line of a message. The payload stays opaque: a JSON string of its text, or base64 if it is not UTF-8. */
export function lineOf(message: Message): string {
  const { event, topic, key, headers, payload } = message;
  const known = { id: event.id, type: event.type, topic, key, createdAt: event.createdAt, headers };
  const body = isUtf8(payload)
    ? { payload: payload.toString("utf8") }
    : { payload: payload.toString("base64"), payloadEncoding: "base64" };
  return `${JSON.stringify({ ...known, ...body })}\n`;
}
