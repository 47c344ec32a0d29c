import { RelayError } from "../core/errors.ts";
import type { EventHeaders, OutboxEvent } from "../core/event.ts";
import type { OnExhausted } from "../core/hold.ts";
import type { RetryPolicy } from "../core/retry-policy.ts";
import { covers, fieldsHold, matchesPattern } from "../core/type-filter.ts";
import type { FieldRule, TypeFilter } from "../ports/queue-store.ts";
import type { Envelope } from "./envelope.ts";
import { nearestName } from "./nearest-name.ts";

export { messageOf } from "./message.ts";

/** Which events go to a destination, and as what message. The first route that matches takes the event. */
export interface Route<DestinationName extends string = string> {
  /** Exact types, or patterns in which `*` matches any characters. Absent: every type. */
  readonly types?: readonly string[];
  /**
   * Further conditions: the event's `key`, `correlation_id` or `header:NAME` exists and matches one of these patterns,
   * in which `*` matches any characters. Plain data, because the source itself evaluates the conditions, in SQL.
   */
  readonly when?: Readonly<Record<string, string | readonly string[]>>;
  /** One of the relay's destinations. */
  readonly destination: DestinationName;
  readonly topic?: (event: OutboxEvent) => string;
  readonly key?: (event: OutboxEvent) => string | null;
  /** Added to the headers of the row and the relay's own. Only `event-id` cannot be changed. */
  readonly headers?: (event: OutboxEvent) => EventHeaders;
  /** The bytes to send instead of the stored ones. */
  readonly payload?: (event: OutboxEvent) => Buffer;
  /** Absent: the payload without an envelope. */
  readonly envelope?: Envelope;
  readonly retry?: RetryPolicy;
  readonly onExhausted?: OnExhausted;
}

type Routed = Pick<OutboxEvent, "type" | "key" | "correlationId" | "headers">;

/** Compiled routes. */
export interface Routes {
  /** The route of this event, if it goes to this destination. */
  routeOf(event: Routed, destination: string): Route | undefined;
  /** The first route to this destination that takes the type, ignoring further conditions. */
  routeOfType(type: string, destination: string): Route | undefined;
  /** The filter that a pipeline to this destination gives its source. */
  filterFor(destination: string): TypeFilter;
}

interface Rule {
  readonly pattern: string;
  readonly when: readonly FieldRule[];
  readonly route: Route;
}

/** A bound, because types come from rows and may be any number. */
const CACHED_TYPES_MAX = 1_000;

/** Every fault of the routes, each with the index of its route. */
export function routeFaults(routes: readonly Route[], destinations: readonly string[]): readonly string[] {
  return rulesAndFaults(routes, destinations).faults;
}

/** Checks and compiles the routes. Throws CONFIG_INVALID with every fault. */
export function compileRoutes(routes: readonly Route[], destinations: readonly string[]): Routes {
  const { faults, rules } = rulesAndFaults(routes, destinations);
  if (faults.length > 0) throw new RelayError("CONFIG_INVALID", faults.join(" "));
  const cached = new Map<string, readonly Rule[]>();
  let last: { readonly type: string; readonly found: readonly Rule[] } | null = null;

  /** All rules that match the type, up to the first one without further conditions. */
  function candidatesOf(type: string): readonly Rule[] {
    // Events mostly come in runs of one type. Each has its own string, and comparing it is faster than hashing it.
    if (last !== null && last.type === type) return last.found;
    const found = cached.get(type) ?? remembered(type);
    last = { type, found };
    return found;
  }

  function remembered(type: string): readonly Rule[] {
    const matching = rules.filter((rule) => matchesPattern(rule.pattern, type));
    const end = matching.findIndex((rule) => rule.when.length === 0);
    const found = end < 0 ? matching : matching.slice(0, end + 1);
    if (cached.size >= CACHED_TYPES_MAX) cached.clear();
    cached.set(type, found);
    return found;
  }

  return {
    routeOf(event, destination) {
      // Hot path: every event passes here.
      for (const { route, when } of candidatesOf(event.type)) {
        if (when.length === 0 || fieldsHold(when, event)) return route.destination === destination ? route : undefined;
      }
      return undefined;
    },
    routeOfType: (type, destination) =>
      candidatesOf(type).find(({ route }) => route.destination === destination)?.route,
    filterFor: (destination) => filterOf(rules, destination),
  };
}

function filterOf(rules: readonly Rule[], destination: string): TypeFilter {
  const filter = rules.map(({ pattern, route, when }) => ({
    pattern,
    ...(when.length === 0 ? {} : { when }),
    mine: route.destination === destination,
  }));
  const own = filter.slice(0, filter.findLastIndex((rule) => rule.mine) + 1);
  const last = own.at(-1);
  const takesAll =
    last !== undefined && own.every((rule) => rule.mine) && last.when === undefined && covers(last.pattern, "*");
  // The rules of other destinations stay in the filter: without them the source could not find types that no route
  // takes.
  return takesAll ? null : filter;
}

function rulesAndFaults(routes: readonly Route[], destinations: readonly string[]) {
  const faults: string[] = [];
  const rules = routes.flatMap((route, index) => rulesOf(route, index, destinations, faults));
  faults.push(...unreachable(rules, routes));
  return { rules, faults };
}

/** The rules of one route. A faulty route has none, because it is unknown what it was meant to take. */
function rulesOf(route: Route, index: number, destinations: readonly string[], faults: string[]): Rule[] {
  const fault = (what: string) => faults.push(`${nameOf(index)}${what}`);
  if (!destinations.includes(route.destination)) {
    const nearest = nearestName(route.destination, destinations);
    const hint =
      nearest === undefined ? `Known destinations: ${destinations.join(", ")}.` : `Did you mean "${nearest}"?`;
    fault(` leads to the unknown destination "${route.destination}". ${hint}`);
  }
  const faultsBefore = faults.length;
  const when = fieldRules(route.when ?? {}, nameOf(index), faults);
  if (route.types?.length === 0) fault(" lists no types. Leave `types` out for a route that takes all of them.");
  if (route.types?.includes("")) fault(' has an empty type. Write "*" for every type.');
  // A route to an unknown destination still has valid rules; only faults after this point make them unusable.
  if (faults.length > faultsBefore) return [];
  return (route.types ?? ["*"]).map((pattern) => ({ pattern, when, route }));
}

/**
 * An event takes one route only, so a rule behind one that covers it would never match: its events would be misrouted
 * silently.
 */
function unreachable(rules: readonly Rule[], routes: readonly Route[]): readonly string[] {
  return rules.flatMap((rule, at) => {
    const taker = rules
      .slice(0, at)
      .find((earlier) => earlier.when.length === 0 && covers(earlier.pattern, rule.pattern));
    if (taker === undefined) return [];
    const [late, early] = [routes.indexOf(rule.route), routes.indexOf(taker.route)];
    return [
      `${nameOf(late)} can never take "${rule.pattern}", because ${nameOf(early)} takes "${taker.pattern}" before it. ` +
        `Put the narrower route first or remove one of them.`,
    ];
  });
}

function nameOf(index: number): string {
  return `routes[${index}]`;
}

const HEADER = "header:";
const FIELDS = ["key", "correlation_id"] as const;

/** The conditions of a route as rules. It leaves out faulty conditions and adds their faults to the list. */
function fieldRules(
  when: Readonly<Record<string, string | readonly string[]>>,
  route: string,
  faults: string[],
): readonly FieldRule[] {
  return Object.entries(when).flatMap(([name, written]) => {
    const patterns = typeof written === "string" ? [written] : written;
    if (patterns.length === 0) faults.push(`${route}.when.${name} lists nothing. Write a text, or "*" for any value.`);
    const field = fieldOf(name, route, faults);
    return field === null ? [] : [{ field, patterns }];
  });
}

function fieldOf(field: string, route: string, faults: string[]): FieldRule["field"] | null {
  const known = FIELDS.find((name) => name === field);
  if (known !== undefined) return known;
  if (field.startsWith(HEADER) && field.length > HEADER.length) return field as `header:${string}`;
  const nearest = nearestName(field, FIELDS) ?? `${HEADER}${field}`;
  faults.push(
    `${route}.when has the unknown field "${field}". Write key, correlation_id or header:NAME (${nearest}?).`,
  );
  return null;
}
