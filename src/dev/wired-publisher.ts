import { RelayError } from "../core/errors.ts";
import type { Message } from "../core/event.ts";
import { type Outcome, retry } from "../core/outcome.ts";
import type { Publisher, Report } from "../ports/publisher.ts";
import { lineOf, SOURCE_HEADER, type ToDestination, type ToRelay, type WireMessage } from "./destination-wire.ts";

/** The relay's end of the channel between the two processes. */
interface DestinationChannel {
  send(message: ToDestination): void;
  onMessage(listener: (message: ToRelay) => void): void;
}

/** Batch numbers are unique per process, because all its publishers share one channel. */
let batches = 0;

/** A publisher that sends batches over the channel to the destination in the parent process. */
export function wiredPublisher(name: string, channel: DestinationChannel): Publisher {
  const waiting = new Map<number, (outcomes: readonly Outcome[]) => void>();
  channel.onMessage(({ batch, outcomes }) => waiting.get(batch)?.(outcomes));

  async function publish(messages: readonly Message[], report: Report, signal: AbortSignal): Promise<void> {
    batches += 1;
    const batch = batches;
    const { promise, resolve, reject } = Promise.withResolvers<readonly Outcome[]>();
    const giveUp = () => {
      channel.send({ kind: "give up", batch });
      reject(new RelayError("PUBLISH_UNKNOWN", `the publish to "${name}" was given up`));
    };
    waiting.set(batch, resolve);
    signal.addEventListener("abort", giveUp, { once: true });
    try {
      if (signal.aborted) giveUp();
      else channel.send({ kind: "batch", batch, messages: messages.map((message) => toWire(message, name)) });
      const outcomes = await promise;
      for (const index of messages.keys()) report(index, outcomes[index] ?? retry("the destination gave no answer"));
    } finally {
      waiting.delete(batch);
      signal.removeEventListener("abort", giveUp);
    }
  }

  return { name, capabilities: { keyOrderInBatch: true, deduplicates: false }, publish, close: async () => {} };
}

function toWire({ event, headers, payload }: Message, destination: string): WireMessage {
  const { id, type, key, createdAt } = event;
  const table = headers[SOURCE_HEADER];
  const source = table === undefined ? null : lineOf(table, destination);
  return { id, type, key, createdAt, destination, source, payload: payload.toString("utf8") };
}
