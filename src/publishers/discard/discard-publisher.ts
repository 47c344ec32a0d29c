import { delivered } from "../../core/outcome.ts";
import type { Publisher } from "../../ports/publisher.ts";

/** Takes everything and keeps nothing: the end of a route for events that nobody shall get. */
export function discardPublisher({ name = "discard" }: { readonly name?: string } = {}): Publisher {
  return {
    name,
    capabilities: { keyOrderInBatch: true, deduplicates: false },
    async publish(batch, report) {
      for (const index of batch.keys()) report(index, delivered);
    },
    async close() {},
  };
}
