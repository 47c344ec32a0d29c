import { delivered, type Outcome, rejected, retry } from "../../src/core/outcome.ts";
import type { Publisher } from "../../src/ports/publisher.ts";
import { connectSink, type SinkAnswer, type SinkClient } from "../servers/sink-client.ts";

/** The header that tells which of several relays sent an event. */
export const SENT_BY = "sent-by";

/**
 * Delivers to the test sink. Each publish under way has a connection of its own, because giving one up resets its
 * connection, and the others must not feel that.
 *
 * The sink judges every event of a batch for itself: after a refused one it still takes the later ones of its key.
 * Hence no order within a batch, and the dispatcher sends a key's events one after another.
 */
export function sinkPublisher(port: number, sentBy?: string): Publisher {
  const own = sentBy === undefined ? {} : { [SENT_BY]: sentBy };
  const idle: SinkClient[] = [];
  let isClosed = false;
  return {
    name: "sink",
    capabilities: { keyOrderInBatch: false, deduplicates: false },
    async publish(batch, report, signal) {
      const client = idle.pop() ?? connectSink(port);
      const events = batch.map(({ event, topic, key, payload, headers }) => ({
        id: event.id,
        topic,
        key,
        payload,
        headers: { ...headers, ...own },
      }));
      try {
        await client.send(events, (index, answer) => report(index, outcomeOf(answer)), signal);
      } catch (error) {
        await client.close();
        throw error;
      }
      if (isClosed) await client.close();
      else idle.push(client);
    },
    async close() {
      isClosed = true;
      await Promise.all(idle.splice(0).map((client) => client.close()));
    },
  };
}

function outcomeOf(answer: SinkAnswer): Outcome {
  if (answer.kind === "ok") return delivered;
  const { reason, scope = "event" } = answer;
  // A refusal of the whole topic says nothing about this event: it waits until the topic is there.
  if (answer.kind === "reject") return scope === "topic" ? retry(reason, { scope }) : rejected(reason);
  const { afterMs } = answer;
  return retry(reason, afterMs === undefined ? { scope } : { scope, afterMs });
}
