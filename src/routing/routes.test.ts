import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { isRelayError } from "../core/errors.ts";
import type { OutboxEvent } from "../core/event.ts";
import { covers, matchesPattern } from "../core/type-filter.ts";
import type { TypeFilter } from "../ports/queue-store.ts";
import { nearestName } from "./nearest-name.ts";
import { compileRoutes, type Route } from "./routes.ts";

const DESTINATIONS = ["kafka", "rabbitmq", "audit"];

function configError(routes: readonly Route[]): string {
  try {
    compileRoutes(routes, DESTINATIONS);
  } catch (error) {
    assert.ok(isRelayError(error, "CONFIG_INVALID"));
    return error.message;
  }
  return assert.fail("the routes were accepted");
}

const of = (type: string, more: Partial<OutboxEvent> = {}) => ({
  type,
  key: null,
  correlationId: null,
  headers: {},
  ...more,
});

test("the first route that matches takes the event, also when a later one names its type exactly", () => {
  const first = { types: ["order.*"], destination: "kafka" };
  const second = { types: ["payment.made", "*.failed"], destination: "rabbitmq" };
  const routes = compileRoutes([first, second], DESTINATIONS);
  assert.equal(routes.routeOf(of("order.failed"), "kafka"), first);
  assert.equal(routes.routeOf(of("order.failed"), "rabbitmq"), undefined);
  assert.equal(routes.routeOf(of("payment.made"), "rabbitmq"), second);
  assert.equal(routes.routeOf(of("payment.failed"), "rabbitmq"), second);
  assert.equal(routes.routeOf(of("payment.begun"), "rabbitmq"), undefined);
});

test("a route without types takes everything that is left", () => {
  const rest = { destination: "kafka" };
  const routes = compileRoutes([{ types: ["log.*"], destination: "audit" }, rest], DESTINATIONS);
  assert.equal(routes.routeOf(of("anything"), "kafka"), rest);
  assert.equal(routes.routeOf(of("log.x"), "kafka"), undefined);
});

test("a destination that takes everything needs no filter", () => {
  const routes = compileRoutes([{ types: ["a", "*"], destination: "kafka" }], DESTINATIONS);
  assert.equal(routes.filterFor("kafka"), null);
  assert.deepEqual(routes.filterFor("audit"), [
    { pattern: "a", mine: false },
    { pattern: "*", mine: false },
  ]);
});

test("a filter keeps all rules in order, so that the source can find types that no route takes", () => {
  const routes = compileRoutes(
    [
      { types: ["order.secret"], destination: "audit" },
      { types: ["order.*"], destination: "kafka" },
      { destination: "rabbitmq" },
    ],
    DESTINATIONS,
  );
  assert.deepEqual(routes.filterFor("kafka"), [
    { pattern: "order.secret", mine: false },
    { pattern: "order.*", mine: true },
    { pattern: "*", mine: false },
  ]);
  assert.deepEqual(
    routes.filterFor("audit")?.map((rule) => rule.mine),
    [true, false, false],
  );
  assert.equal(routes.filterFor("rabbitmq")?.length, 3);
});

test("an unknown destination is refused with the nearest valid name", () => {
  assert.match(configError([{ destination: "kafak" }]), /routes\[0\].*"kafak".*Did you mean "kafka"\?/);
  assert.match(configError([{ destination: "zzzzzzzz" }]), /Known destinations: kafka, rabbitmq, audit/);
});

test("a route that no event can reach is refused, naming both routes", () => {
  const catchAll = { destination: "kafka" };
  assert.match(
    configError([catchAll, { types: ["a"], destination: "audit" }]),
    /routes\[1\] can never take "a", because routes\[0\] takes "\*"/,
  );
  const narrow = { types: ["order.*.eu"], destination: "audit" };
  assert.match(configError([{ types: ["order.*"], destination: "kafka" }, narrow]), /routes\[1\].*routes\[0\]/);
  assert.match(configError([{ types: ["a", "a"], destination: "kafka" }]), /can never take "a"/);
});

test("an empty type and an empty list of types are refused", () => {
  assert.match(configError([{ types: [""], destination: "kafka" }]), /routes\[0\] has an empty type/);
  assert.match(configError([{ types: [], destination: "kafka" }]), /routes\[0\] lists no types/);
});

test("more types than the cache holds are still routed", () => {
  const route = { types: ["t*"], destination: "kafka" };
  const routes = compileRoutes([route], DESTINATIONS);
  for (let round = 0; round < 2; round++) {
    for (let type = 0; type < 2_500; type++) {
      assert.equal(routes.routeOf(of(`t${type}`), "kafka"), route);
      assert.equal(routes.routeOf(of(`x${type}`), "kafka"), undefined);
    }
  }
});

test("a route can have conditions beyond the type; the next route takes the other events", () => {
  const europe = { types: ["order.*"], when: { "header:region": ["eu", "uk-*"], key: "*" }, destination: "audit" };
  const rest = { destination: "kafka" };
  const routes = compileRoutes([europe, rest], DESTINATIONS);
  const takenBy = (more: Partial<OutboxEvent>, type = "order.placed") =>
    DESTINATIONS.filter((destination) => routes.routeOf(of(type, more), destination) !== undefined);
  assert.deepEqual(takenBy({ key: "k", headers: { region: "eu" } }), ["audit"]);
  assert.deepEqual(takenBy({ key: "k", headers: { region: "uk-1" } }), ["audit"]);
  assert.deepEqual(takenBy({ key: "k", headers: { region: "us" } }), ["kafka"]);
  assert.deepEqual(takenBy({ key: null, headers: { region: "eu" } }), ["kafka"]);
  assert.deepEqual(takenBy({ key: "k" }), ["kafka"]);
  assert.deepEqual(takenBy({ key: "k", headers: { region: "eu" } }, "other"), ["kafka"]);
  assert.equal(routes.routeOfType("order.placed", "audit"), europe);
  assert.equal(routes.routeOfType("other", "audit"), undefined);
  assert.deepEqual(routes.filterFor("audit"), [
    {
      pattern: "order.*",
      when: [
        { field: "header:region", patterns: ["eu", "uk-*"] },
        { field: "key", patterns: ["*"] },
      ],
      mine: true,
    },
    { pattern: "*", mine: false },
  ]);
});

test("an unknown field of a condition is refused with the nearest valid field", () => {
  const by = (field: string, value: string | string[] = "x") =>
    configError([{ when: { [field]: value }, destination: "kafka" }]);
  assert.match(by("keey"), /routes\[0\]\.when has the unknown field "keey".*\(key\?\)/);
  assert.match(by("tenant-of-it"), /header:tenant-of-it\?/);
  assert.match(by("key", []), /routes\[0\]\.when\.key lists nothing/);
});

const word = fc.string({ unit: fc.constantFrom("a", "b", "."), maxLength: 6 });
const pattern = fc.string({ unit: fc.constantFrom("a", "b", ".", "*"), minLength: 1, maxLength: 6 });

test("a pattern matches what the same regular expression matches", () => {
  fc.assert(
    fc.property(pattern, word, (written, type) => {
      const expression = new RegExp(`^${written.replaceAll(".", "\\.").replaceAll("*", ".*")}$`);
      assert.equal(matchesPattern(written, type), expression.test(type));
    }),
  );
});

test("a pattern that covers another one matches everything that the other one matches", () => {
  fc.assert(
    fc.property(pattern, pattern, word, (wide, narrow, type) => {
      if (covers(wide, narrow) && matchesPattern(narrow, type)) assert.ok(matchesPattern(wide, type));
    }),
  );
});

test("the filters and the routes agree: an event goes to exactly the destination whose filter takes it", () => {
  const anyRoute = fc.record({
    types: fc.array(pattern, { minLength: 1, maxLength: 3 }),
    destination: fc.constantFrom(...DESTINATIONS),
  });
  fc.assert(
    fc.property(fc.array(anyRoute, { maxLength: 4 }), word, (written, type) => {
      let routes: ReturnType<typeof compileRoutes>;
      try {
        routes = compileRoutes(written, DESTINATIONS);
      } catch {
        return;
      }
      for (const destination of DESTINATIONS) {
        assert.equal(takes(routes.filterFor(destination), type), routes.routeOf(of(type), destination) !== undefined);
      }
    }),
  );
});

function takes(filter: TypeFilter, type: string): boolean {
  if (filter === null) return true;
  return filter.find((rule) => matchesPattern(rule.pattern, type))?.mine ?? false;
}

test("the nearest name is the one that was probably meant", () => {
  assert.equal(nearestName("Kafk", DESTINATIONS), "kafka");
  assert.equal(nearestName("rabitmq", DESTINATIONS), "rabbitmq");
  assert.equal(nearestName("sqs", ["kinesis", "cassandra"]), undefined);
});
