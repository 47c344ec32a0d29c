import assert from "node:assert/strict";
import { test } from "node:test";
import { scheduledRetry } from "../core/retry-policy.ts";
import type { TechnicalEvent } from "../ports/technical-events.ts";
import { memoryPublisher } from "../publishers/memory/memory-publisher.ts";
import type { Route } from "../routing/routes.ts";
import { memorySource } from "../sources/memory/memory-source.ts";
import { createRelay, type RelayOptions } from "./relay.ts";

export const QUICK = {
  leaseMs: 2_000,
  leaseMarginMs: 400,
  pollIntervalMs: 20,
  publishTimeoutMs: 300,
  balanceMs: 50,
  reviewMs: 50,
  unroutedMs: 50,
  circuitInitialMs: 20,
  circuitMaxMs: 100,
};
export const ids = (messages: readonly { event: { id: string } }[]) => messages.map((message) => message.event.id);

export function stage(route: Partial<Route> = {}, options: Partial<RelayOptions> = {}) {
  const source = memorySource();
  const publisher = memoryPublisher({ keyOrderInBatch: false });
  const relay = createRelay({
    sources: [source],
    destinations: { out: publisher },
    routes: [{ destination: "out", retry: scheduledRetry([20, 20]), ...route }],
    timing: QUICK,
    ...options,
  });
  const reported: TechnicalEvent[] = [];
  relay.onAny((event) => reported.push(event));
  const insert = (key: string | null, ...names: string[]) =>
    source.insert(...names.map((id) => ({ id, type: "t", key, payload: id })));
  const of = <Name extends TechnicalEvent["name"]>(name: Name) =>
    reported.filter((event): event is Extract<TechnicalEvent, { readonly name: Name }> => event.name === name);
  return { source, publisher, relay, reported, insert, of };
}

test("the stage delivers the events that its publisher takes", async () => {
  const { insert, publisher, relay } = stage();
  await using _ = relay;
  insert("k", "1", "2");
  await relay.start();
  await publisher.arrived(2);
  assert.deepEqual(ids(publisher.delivered), ["1", "2"]);
});
