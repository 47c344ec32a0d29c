import { reasonOf } from "../core/errors.ts";
import type { OutboxEvent } from "../core/event.ts";
import { covers } from "../core/type-filter.ts";
import { type Route, routeFaults } from "../routing/routes.ts";
import { compileTemplate, type Template } from "../routing/template.ts";
import type { DestinationConfig } from "./destinations/destination-scheme.ts";
import type { WrittenRoute } from "./reading/written-routes.ts";
import type { Settings } from "./settings/settings.ts";
import { duration } from "./settings/value-types.ts";
import type { ExplicitPolicy } from "./sources/presets.ts";

/** A route, the same for all sources. Templates that name the source are filled per source. */
export interface RouteConfig {
  readonly types: readonly string[] | null;
  readonly when: NonNullable<Route["when"]>;
  readonly destination: string;
  readonly templates: MessageTemplates;
  readonly envelope: EnvelopeConfig | null;
  /** Added to events without a content type of their own. */
  readonly contentType: string | null;
  /** Overrides for this route; the rest is as for all routes. */
  readonly policy: Partial<Pick<ExplicitPolicy, "retry" | "schedule" | "onExhausted">>;
  /** An intent relay's own translation, which replaces the templates. */
  readonly translation?: Pick<Route, "topic" | "key" | "headers" | "payload">;
}

interface MessageTemplates {
  readonly topic: Template | null;
  /** The setting that holds the topic template, for problems. */
  readonly topicSetting: string;
  readonly key: Template | null;
  readonly headers: Readonly<Record<string, Template>>;
}

interface EnvelopeConfig {
  readonly format: "cloudevents-binary" | "cloudevents-structured";
  readonly source: Template;
  readonly contentType: string | undefined;
}

/** The routes as written, or the one that sends everything to the only destination. */
export function routesConfig(
  settings: Settings,
  destinations: readonly DestinationConfig[],
  problems: string[],
): readonly RouteConfig[] {
  const written = settings.OUTBOX_ROUTES;
  const names = destinationNames(settings, destinations);
  // A missing destination is already reported.
  if (names.length === 0) return [];
  if (written === undefined && names.length > 1) {
    problems.push(`OUTBOX_ROUTES is missing: set which events go to ${names.join(", ")}`);
    return [];
  }
  const routes = (written ?? [{}]).map((route, index) =>
    routeConfig(route, written === undefined ? "" : `routes[${index}].`, settings, names, problems),
  );
  problems.push(...routesProblems(routes, names));
  return routes;
}

/** Includes destinations with problems of their own: the routes to them are valid. */
export function destinationNames(settings: Settings, destinations: readonly DestinationConfig[]): readonly string[] {
  return [...new Set([...Object.keys(settings.OUTBOX_DESTINATIONS ?? {}), ...destinations.map(({ name }) => name)])];
}

/** `place` is the route's path in the settings, for problems. */
export function routeConfig(
  route: WrittenRoute,
  place: string,
  settings: Settings,
  names: readonly string[],
  problems: string[],
): RouteConfig {
  if (route.destination === undefined && names.length > 1) {
    problems.push(`${place}destination is missing: write one of ${names.join(", ")}`);
  }
  const template = (own: string | undefined, name: string, ofAll: string | undefined, setting: string) =>
    own === undefined ? compiled(ofAll, setting, problems) : compiled(own, `${place}${name}`, problems);
  const headers = { ...settings.HEADERS_TEMPLATE, ...route.headers };
  return {
    types: route.types === undefined ? null : [route.types].flat(),
    when: route.when ?? {},
    destination: route.destination ?? names[0]!,
    templates: {
      topic: template(route.topic, "topic", settings.TOPIC_TEMPLATE, "TOPIC_TEMPLATE"),
      topicSetting: route.topic === undefined ? "TOPIC_TEMPLATE" : `${place}topic`,
      key: template(route.key, "key", settings.KEY_TEMPLATE, "KEY_TEMPLATE"),
      headers: Object.fromEntries(
        Object.entries(headers).flatMap(([name, text]) => {
          const value = compiled(text, route.headers === undefined ? "HEADERS_TEMPLATE" : `${place}headers`, problems);
          return value === null ? [] : [[name, value] as const];
        }),
      ),
    },
    envelope: envelopeConfig(route.envelope ?? settings.ENVELOPE ?? "raw", settings, problems),
    contentType: settings.CONTENT_TYPE ?? null,
    policy: {
      ...(route.retry === undefined ? {} : retryConfig(route.retry, place, problems)),
      ...(route.onExhausted === undefined ? {} : { onExhausted: route.onExhausted }),
    },
  };
}

function envelopeConfig(
  format: NonNullable<Settings["ENVELOPE"]>,
  { CLOUDEVENTS_SOURCE, CONTENT_TYPE, SERVICE_NAME }: Settings,
  problems: string[],
): EnvelopeConfig | null {
  if (format === "raw") return null;
  const text = CLOUDEVENTS_SOURCE ?? `/${encodeURIComponent(SERVICE_NAME)}/{schema}/{table}`;
  const source = compiled(text, "CLOUDEVENTS_SOURCE", problems);
  return source === null ? null : { format, source, contentType: CONTENT_TYPE };
}

function retryConfig(
  { initialDelay, jitter, maxAttempts, maxDelay, schedule }: NonNullable<WrittenRoute["retry"]>,
  place: string,
  problems: string[],
): RouteConfig["policy"] {
  const pause = (written: string | number | undefined, name: string): number | undefined =>
    written === undefined ? undefined : pauseMs(String(written), `${place}retry.${name}`, problems);
  const retry = {
    attemptsMax: maxAttempts,
    initialMs: pause(initialDelay, "initialDelay"),
    maxMs: pause(maxDelay, "maxDelay"),
    jitter,
  };
  if (schedule === undefined) return { retry };
  if (Object.values(retry).some((it) => it !== undefined)) {
    problems.push(`${place}retry has both a schedule and computed delays: keep one of them`);
  }
  return { schedule: schedule.map((written) => pause(written, "schedule") ?? 0) };
}

function compiled(text: string | undefined, name: string, problems: string[]): Template | null {
  if (text === undefined) return null;
  try {
    return compileTemplate(text);
  } catch (error) {
    problems.push(`${name}: ${reasonOf(error).replace(/ \[CONFIG_INVALID\].*$/, "")}`);
    return null;
  }
}

/** Unknown destinations and fields, and routes that can never match. */
export function routesProblems(routes: readonly RouteConfig[], names: readonly string[]): readonly string[] {
  return routeFaults(
    routes.map(({ destination, types, when }) => ({ destination, when, ...(types === null ? {} : { types }) })),
    names,
  );
}

/** The same routes for these types only. Other relays deliver all other types. */
export function restrictedTo(only: readonly string[], routes: readonly RouteConfig[]): readonly RouteConfig[] {
  if (only.length === 0) return routes;
  const covered: string[] = [];
  return routes.flatMap((route) => {
    const common = only.flatMap((wanted) => (route.types ?? ["*"]).flatMap((it) => narrower(wanted, it)));
    const types = [...new Set(common)].filter((type) => !covered.some((earlier) => covers(earlier, type)));
    if (Object.keys(route.when).length === 0) covered.push(...types);
    return types.length === 0 ? [] : [{ ...route, types }];
  });
}

/** The common part of two patterns, if one of them contains the other. */
function narrower(one: string, other: string): string[] {
  if (covers(other, one)) return [one];
  return covers(one, other) ? [other] : [];
}

/** The route for one source, with the source's names in the templates. */
export function filledRoute(
  { contentType, destination, envelope, templates, translation, types, when }: RouteConfig,
  source: { readonly schema: string; readonly table: string },
  lacking: (what: string) => never,
): Route {
  const { key, topic, topicSetting } = templates;
  const headers = Object.entries(templates.headers);
  return {
    destination,
    when,
    ...(types === null ? {} : { types }),
    ...(topic === null ? {} : { topic: (event) => topic(event, source) ?? lacking(topicSetting) }),
    ...(key === null ? {} : { key: (event) => key(event, source) }),
    ...(headers.length === 0 && contentType === null
      ? {}
      : { headers: (event) => ({ ...typeHeader(contentType, event), ...filledHeaders(headers, event, source) }) }),
    ...(envelope === null
      ? {}
      : {
          envelope: {
            format: envelope.format,
            source: (event) => envelope.source(event, source) ?? lacking("CLOUDEVENTS_SOURCE"),
            ...(envelope.contentType === undefined ? {} : { contentType: envelope.contentType }),
          },
        }),
    ...translation,
  };
}

function typeHeader(contentType: string | null, { headers }: OutboxEvent): Record<string, string> {
  return contentType === null || Object.hasOwn(headers, "content-type") ? {} : { "content-type": contentType };
}

function filledHeaders(
  templates: readonly (readonly [string, Template])[],
  event: OutboxEvent,
  source: { readonly schema: string; readonly table: string },
): Record<string, string> {
  const filled = templates.flatMap(([name, template]) => {
    const value = template(event, source);
    return value === null ? [] : [[name, value] as const];
  });
  return Object.fromEntries(filled);
}

const PAUSE = duration({ minMs: 0, maxMs: 365 * 24 * 3_600_000 });

/** Parses a delay between two attempts; undefined when `problems` say what is wrong. */
export function pauseMs(written: string, name: string, problems: string[]): number | undefined {
  const { data, error } = PAUSE.safeParse(written);
  for (const { message } of error?.issues ?? []) problems.push(`${name} has ${JSON.stringify(written)}: ${message}`);
  return data;
}
