import { RelayError } from "../core/errors.ts";
import type { Headers, OutboxEvent } from "../core/event.ts";
import type { OnExhausted } from "../core/hold.ts";
import type { RetryPolicy } from "../core/retry-policy.ts";
import { fieldsHold } from "../core/type-filter.ts";
import { covers, matchesPattern } from "../core/type-pattern.ts";
import type { FieldRule, TypeFilter } from "../ports/queue-store.ts";
import type { Envelope } from "./envelope.ts";
import { fieldRules } from "./field-rules.ts";
import { nearestName } from "./nearest-name.ts";

export { messageOf } from "./message.ts";

/** Which events go to a destination, and as what. Of several routes the first that matches takes the event. */
export interface Route {
  /** Exact types, or patterns in which `*` stands for any run of characters. Absent: every type. */
  readonly types?: readonly string[];
  /**
   * What else must hold of the event: its `key`, `correlation_id` or `header:NAME` is there and is one of these, in
   * which `*` stands for any run of characters. Plain data, because the source itself has to tell whose event it is.
   */
  readonly when?: Readonly<Record<string, string | readonly string[]>>;
  readonly destination: string;
  readonly topic?: (event: OutboxEvent) => string;
  readonly key?: (event: OutboxEvent) => string | null;
  /** Added to the headers of the row and ours; `event-id` alone cannot be changed. */
  readonly headers?: (event: OutboxEvent) => Headers;
  /** What is sent instead of the stored bytes. */
  readonly payload?: (event: OutboxEvent) => Buffer;
  /** Absent: the payload as it is. */
  readonly envelope?: Envelope;
  readonly retry?: RetryPolicy;
  readonly onExhausted?: OnExhausted;
}

type Routed = Pick<OutboxEvent, "type" | "key" | "correlationId" | "headers">;

export interface Routes {
  /** The route of this event if it leads to this destination. */
  routeOf(event: Routed, destination: string): Route | undefined;
  /** The first route to this destination that takes the type, whatever else it asks for. */
  routeOfType(type: string, destination: string): Route | undefined;
  /** What a pipeline to this destination asks its source for. */
  filterFor(destination: string): TypeFilter;
}

interface Rule {
  readonly pattern: string;
  readonly when: readonly FieldRule[];
  readonly route: Route;
}

/** Types come from rows, so their number has no bound of its own. */
const CACHED_TYPES_MAX = 1_000;

/** Checks the routes against the configured destinations. Throws CONFIG_INVALID, naming the route. */
export function compileRoutes(routes: readonly Route[], destinations: readonly string[]): Routes {
  const rules = routes.flatMap((route, index) => rulesOf(route, index, destinations));
  refuseUnreachable(rules, routes);
  const cached = new Map<string, readonly Rule[]>();
  let last: { readonly type: string; readonly found: readonly Rule[] } | null = null;

  /** All rules that the type alone does not rule out, up to the first that asks for nothing else. */
  function candidatesOf(type: string): readonly Rule[] {
    // Most come in rows of one type, each with a text of its own, which is compared sooner than hashed.
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
      // Every event passes here.
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
  // The rules of the others stay: without them the source could not tell what nobody takes.
  return takesAll ? null : filter;
}

function rulesOf(route: Route, index: number, destinations: readonly string[]): Rule[] {
  if (!destinations.includes(route.destination)) {
    const nearest = nearestName(route.destination, destinations);
    const hint = nearest === undefined ? `Known are: ${destinations.join(", ")}.` : `Did you mean "${nearest}"?`;
    throw invalid(`${nameOf(index)} leads to the unknown destination "${route.destination}". ${hint}`);
  }
  const when = fieldRules(route.when ?? {}, nameOf(index));
  if (route.types === undefined) return [{ pattern: "*", when, route }];
  if (route.types.length === 0) {
    throw invalid(`${nameOf(index)} lists no types. Leave \`types\` out for a route that takes all of them.`);
  }
  return route.types.map((pattern) => {
    if (pattern === "") throw invalid(`${nameOf(index)} has an empty type. Write "*" for every type.`);
    return { pattern, when, route };
  });
}

/** An event goes one way only: what stands behind a rule that takes all of it would be misrouted in silence. */
function refuseUnreachable(rules: readonly Rule[], routes: readonly Route[]): void {
  for (const [at, rule] of rules.entries()) {
    const taker = rules
      .slice(0, at)
      .find((earlier) => earlier.when.length === 0 && covers(earlier.pattern, rule.pattern));
    if (taker === undefined) continue;
    const [late, early] = [routes.indexOf(rule.route), routes.indexOf(taker.route)];
    throw invalid(
      `${nameOf(late)} can never take "${rule.pattern}", because ${nameOf(early)} takes "${taker.pattern}" before it. ` +
        `Put the narrower route first or remove one of them.`,
    );
  }
}

function nameOf(index: number): string {
  return `routes[${index}]`;
}

function invalid(what: string): RelayError {
  return new RelayError("CONFIG_INVALID", what);
}
