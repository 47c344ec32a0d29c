import { delivered } from "../../core/outcome.ts";
import type { Publisher } from "../../ports/publisher.ts";

/** Accepts every event and drops it, for routes whose events must not be delivered. */
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
