import type { ServiceConfig } from "../config/service-config.ts";
import type { FoundTable } from "../config/sources/find-tables.ts";
import type { OutboxEvent } from "../core/event.ts";
import type { DoctorDestination, EventSample } from "../operations/doctor/finding.ts";
import type { TableName } from "../postgres/identifiers.ts";
import { compileRoutes, type Route } from "../routing/routes.ts";
import { pipelineEnd, tableRoutes } from "./engine.ts";

/** What the routes say of a destination's topics, for the doctor. `listed` has a log once for each subscriber. */
export function routedTopics(
  config: ServiceConfig,
  destination: string,
  listed: readonly FoundTable[],
): Pick<DoctorDestination, "namedTopics" | "rulesFor" | "topicsOf"> {
  const end = pipelineEnd(destination, config);
  const ends = config.destinations.map(({ name }) => pipelineEnd(name, config));
  const routed = listed.map((table) => {
    const routes = tableRoutes(config, table);
    return { table, own: routes.filter((route) => route.destination === end), compiled: compileRoutes(routes, ends) };
  });
  const of = ({ schema, table }: TableName) =>
    routed.filter((it) => it.table.schema === schema && it.table.table === table);
  return {
    rulesFor: (source) => of(source)[0]?.compiled.filterFor(end) ?? null,
    namedTopics: (source) => of(source).flatMap(({ own }) => own.flatMap(topicsNamedBy)),
    topicsOf: (sample, source) =>
      of(source).flatMap(({ compiled }) => {
        const route = compiled.routeOfType(sample.type, end);
        return route === undefined ? [] : topicOf(route, sample);
      }),
  };
}

/** The fixed topic of a route, or those of the exact types that it lists. */
function topicsNamedBy(route: Route): readonly string[] {
  const exact = (route.types ?? []).filter((type) => !type.includes("*"));
  return [...topicOf(route, {}), ...exact.flatMap((type) => topicOf(route, { type }))];
}

/** Empty when the topic depends on more of the event than is known. */
function topicOf({ topic }: Route, known: Partial<EventSample>): readonly string[] {
  try {
    const event = onlyKnown({ ...known, headers: onlyKnown(known.headers ?? {}) }) as unknown as OutboxEvent;
    return [topic === undefined ? event.type : topic(event)];
  } catch {
    return [];
  }
}

function onlyKnown<Value extends object>(value: Value): Value {
  const known = (name: string | symbol) => {
    if (!Object.hasOwn(value, name)) throw new Error(`${String(name)} is unknown`);
  };
  return new Proxy(value, {
    get(target, name) {
      known(name);
      return Reflect.get(target, name);
    },
    getOwnPropertyDescriptor(target, name) {
      known(name);
      return Reflect.getOwnPropertyDescriptor(target, name);
    },
  });
}
