// Compiled by `npm run check`: each `@ts-expect-error` fails when there is no error.
import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryPublisher } from "../publishers/memory/memory-publisher.ts";
import { defineIntentRelay, intentRoute } from "../routing/intent-relay.ts";
import type { Route } from "../routing/routes.ts";
import { memorySource } from "../sources/memory/memory-source.ts";
import { createRelay } from "./relay.ts";

const common = {
  sources: [memorySource()],
  destinations: { kafka: memoryPublisher(), crm: { publisher: memoryPublisher(), ratePerSecond: 10 } },
};

test("H4 a route leads to one of the destinations given, checked by the compiler and by the relay", () => {
  createRelay({ ...common, routes: [{ types: ["order.*"], destination: "kafka" }, { destination: "crm" }] });
  assert.throws(
    // @ts-expect-error there is no destination of this name
    () => createRelay({ ...common, routes: [{ destination: "kafak" }] }),
    { code: "CONFIG_INVALID", message: /unknown destination "kafak"\. Did you mean "kafka"\?/ },
  );
});

test("H4 so do the routes of a single source", () => {
  createRelay({ ...common, policies: () => ({ routes: [{ destination: "crm" }] }) });
  // @ts-expect-error there is no destination of this name
  assert.throws(() => createRelay({ ...common, policies: () => ({ routes: [{ destination: "mail" }] }) }), {
    code: "CONFIG_INVALID",
  });
});

test("H4 the route of an intent relay keeps the name of its destination", () => {
  const relay = defineIntentRelay({
    type: "mail.send",
    target: { destination: "crm" },
    translate: () => ({ body: {} }),
  });
  createRelay({ ...common, routes: [intentRoute(relay, "crm")] });
  // @ts-expect-error there is no destination of this name
  assert.throws(() => createRelay({ ...common, routes: [intentRoute(relay, "mail")] }), { code: "CONFIG_INVALID" });
});

test("H4 names that are known only at run time are checked by the relay alone", () => {
  const name: string = "kafka";
  const routes: Route[] = [{ destination: name }];
  const destinations = { [name]: memoryPublisher() };
  assert.doesNotThrow(() => createRelay({ sources: common.sources, destinations, routes }));
});

test("H4 the settings of a destination stand with it, and a wrong one is refused", () => {
  const destinations = { crm: { publisher: memoryPublisher(), limits: { batchSize: 0 } } };
  assert.throws(() => createRelay({ sources: common.sources, destinations }), {
    code: "CONFIG_INVALID",
    message: /limits\.batchSize is 0/,
  });
  // @ts-expect-error a destination has no such setting
  const wrong: Parameters<typeof createRelay>[0]["destinations"] = { crm: { publisher: memoryPublisher(), rate: 1 } };
  assert.ok(wrong);
});
