import { RelayError } from "../core/errors.ts";
import type { Headers, OutboxEvent } from "../core/event.ts";
import type { OnExhausted } from "../core/hold.ts";
import type { RetryPolicy } from "../core/retry-policy.ts";
import type { TypeFilter } from "../ports/queue-store.ts";
import { nearestName } from "./nearest-name.ts";
import { covers, isPattern, matchesPattern } from "./type-pattern.ts";

export { messageOf } from "./message.ts";

/** Which events go to a destination, and as what. Of several routes the first that matches the type takes the event. */
export interface Route {
  /** Exact types, or patterns in which `*` stands for any run of characters. Absent: every type. */
  readonly types?: readonly string[];
  readonly destination: string;
  readonly topic?: (event: OutboxEvent) => string;
  readonly key?: (event: OutboxEvent) => string | null;
  /** Added to the headers of the row and ours; `event-id` alone cannot be changed. */
  readonly headers?: (event: OutboxEvent) => Headers;
  readonly retry?: RetryPolicy;
  readonly onExhausted?: OnExhausted;
}

export interface Routes {
  /** The route of this type if it leads to this destination. */
  routeOf(type: string, destination: string): Route | undefined;
  /** What a pipeline to this destination asks its source for. */
  filterFor(destination: string): TypeFilter;
}

interface Rule {
  readonly pattern: string;
  readonly route: Route;
}

/** Types come from rows, so their number has no bound of its own. */
const CACHED_TYPES_MAX = 1_000;

/** Checks the routes against the configured destinations. Throws CONFIG_INVALID, naming the route. */
export function compileRoutes(routes: readonly Route[], destinations: readonly string[]): Routes {
  const rules = routes.flatMap((route, index) => rulesOf(route, index, destinations));
  refuseUnreachable(rules, routes);
  const exact = new Map<string, Route>();
  for (const { pattern } of rules) if (!isPattern(pattern)) exact.set(pattern, firstMatch(rules, pattern)!);
  const patterns = rules.filter((rule) => isPattern(rule.pattern));
  const cached = new Map<string, Route | null>();

  function find(type: string): Route | null {
    const known = exact.get(type) ?? cached.get(type);
    if (known !== undefined) return known;
    const found = firstMatch(patterns, type) ?? null;
    if (cached.size >= CACHED_TYPES_MAX) cached.clear();
    cached.set(type, found);
    return found;
  }

  return {
    routeOf(type, destination) {
      const route = find(type);
      return route !== null && route.destination === destination ? route : undefined;
    },
    filterFor: (destination) => filterOf(rules, destination),
  };
}

function firstMatch(rules: readonly Rule[], type: string): Route | undefined {
  return rules.find((rule) => matchesPattern(rule.pattern, type))?.route;
}

function filterOf(rules: readonly Rule[], destination: string): TypeFilter {
  const filter = rules.map(({ pattern, route }) => ({ pattern, mine: route.destination === destination }));
  const own = filter.slice(0, filter.findLastIndex((rule) => rule.mine) + 1);
  const takesAll = own.length > 0 && own.every((rule) => rule.mine) && covers(own.at(-1)!.pattern, "*");
  // The rules of the others stay: without them the source could not tell what nobody takes.
  return takesAll ? null : filter;
}

function rulesOf(route: Route, index: number, destinations: readonly string[]): Rule[] {
  if (!destinations.includes(route.destination)) {
    const nearest = nearestName(route.destination, destinations);
    const hint = nearest === undefined ? `Known are: ${destinations.join(", ")}.` : `Did you mean "${nearest}"?`;
    throw invalid(`${nameOf(index)} leads to the unknown destination "${route.destination}". ${hint}`);
  }
  if (route.types === undefined) return [{ pattern: "*", route }];
  if (route.types.length === 0) {
    throw invalid(`${nameOf(index)} lists no types. Leave \`types\` out for a route that takes all of them.`);
  }
  return route.types.map((pattern) => {
    if (pattern === "") throw invalid(`${nameOf(index)} has an empty type. Write "*" for every type.`);
    return { pattern, route };
  });
}

/** An event goes one way only: what stands behind a rule that takes all of it would be misrouted in silence. */
function refuseUnreachable(rules: readonly Rule[], routes: readonly Route[]): void {
  for (const [at, rule] of rules.entries()) {
    const taker = rules.slice(0, at).find((earlier) => covers(earlier.pattern, rule.pattern));
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
