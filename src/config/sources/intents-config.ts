import { matchesPattern } from "../../core/type-filter.ts";
import { intentRoute } from "../../routing/intent-relay.ts";
import { nearestName } from "../../routing/nearest-name.ts";
import type { DestinationConfig } from "../destinations/destination-scheme.ts";
import { destinationsConfig, hasDestination } from "../destinations/destinations-config.ts";
import { secretsInAddress } from "../reading/address-secrets.ts";
import { type RouteConfig, restrictedTo, routesConfig } from "../routes-config.ts";
import type { Settings } from "../settings/settings.ts";
import type { LoadedIntentRelay } from "./intent-relays.ts";

/**
 * Destinations and routes. With intent relays, only they and written routes match events: an intent without a relay
 * must be reported, not sent somewhere unchanged. With subscribers too, events of queues go only where a route sends
 * them.
 */
export function routingConfig(
  settings: Settings,
  relays: readonly LoadedIntentRelay[],
  problems: string[],
  mayLackDestination = false,
): { readonly destinations: readonly DestinationConfig[]; readonly routes: readonly RouteConfig[] } {
  const { OUTBOX_ROUTES } = settings;
  const hasSubscribers = settings.OUTBOX_SUBSCRIBERS !== undefined;
  const isConfigured = hasDestination(settings);
  if (mayLackDestination && !isConfigured && relays.length === 0) return { destinations: [], routes: [] };
  const bringsAll = relays.length > 0 && relays.every(({ relay }) => "url" in relay.target);
  const configured = bringsAll && !isConfigured ? [] : destinationsConfig(settings, problems);
  const destinations = [...configured, ...intentDestinations(relays, configured, settings, problems)];
  const isUnrouted = (relays.length > 0 || hasSubscribers) && OUTBOX_ROUTES === undefined;
  const written = isUnrouted ? [] : routesConfig(settings, destinations, problems);
  refuseOverlaps(relays, written, problems);
  const routes = [...intentRoutes(relays, destinations, problems), ...written];
  const only = settings.OUTBOX_ONLY ?? [];
  if (routes.length > 0 && restrictedTo(only, routes).length === 0) {
    problems.push(`OUTBOX_ONLY is ${only.join(",")}, which matches no route and no intent relay`);
  }
  return { destinations, routes };
}

/** Secrets in the addresses of the relays' targets, to be redacted. */
export function intentSecrets(relays: readonly LoadedIntentRelay[]): string[] {
  return relays.flatMap(({ relay: { target } }) => ("url" in target ? secretsInAddress(target.url) : []));
}

/**
 * The destinations that relays bring with them, each named after its relay, so that a failing target does not affect
 * other intents.
 */
function intentDestinations(
  relays: readonly LoadedIntentRelay[],
  configured: readonly DestinationConfig[],
  settings: Settings,
  problems: string[],
): readonly DestinationConfig[] {
  return relays.flatMap(({ file, name, relay }) => {
    const { target } = relay;
    if (!("url" in target)) return [];
    if (configured.some((destination) => destination.name === name)) {
      problems.push(`${file}: a destination named ${name} already exists: rename the file, or use target.destination`);
      return [];
    }
    const own: string[] = [];
    const alone = { ...settings, OUTBOX_DESTINATION: undefined, KAFKA_BROKERS: undefined };
    const found = destinationsConfig({ ...alone, OUTBOX_DESTINATIONS: { [name]: { url: target.url } } }, own);
    problems.push(...own.map((problem) => `${file}: ${problem.replaceAll(`destinations.${name}.`, "target.")}`));
    return found;
  });
}

/** A route for each relay. The templates for all messages do not apply to them. */
function intentRoutes(
  relays: readonly LoadedIntentRelay[],
  destinations: readonly DestinationConfig[],
  problems: string[],
): readonly RouteConfig[] {
  const names = destinations.map(({ name }) => name);
  return relays.flatMap(({ file, name, relay }) => {
    const destination = "url" in relay.target ? name : relay.target.destination;
    if (!names.includes(destination)) {
      // A problem of the relay's own target is already reported.
      if (!("url" in relay.target)) problems.push(`${file}: ${unknown(destination, names)}`);
      return [];
    }
    const { headers, key, payload, topic } = intentRoute(relay, destination);
    return [
      {
        types: [relay.type],
        when: {},
        destination,
        templates: { topic: null, topicSetting: "", key: null, headers: {} },
        envelope: null,
        contentType: null,
        policy: policyOf(relay),
        translation: { topic: topic!, key: key!, headers: headers!, payload: payload! },
      },
    ];
  });
}

/** The first matching route wins, so the relay would hide a route for the same type. */
function refuseOverlaps(
  relays: readonly LoadedIntentRelay[],
  routes: readonly RouteConfig[],
  problems: string[],
): void {
  for (const [index, { types }] of routes.entries()) {
    for (const { file, relay } of relays) {
      const isNamed = types?.some((pattern) => !pattern.includes("*") && matchesPattern(pattern, relay.type)) ?? false;
      if (isNamed) problems.push(`routes[${index}] and ${file} both match ${JSON.stringify(relay.type)}: keep one`);
    }
  }
}

function policyOf({ retry, onExhausted }: LoadedIntentRelay["relay"]): RouteConfig["policy"] {
  const own = onExhausted === undefined ? {} : { onExhausted };
  if (retry === undefined) return own;
  if (retry.kind === "schedule") return { ...own, schedule: retry.delaysMs };
  const { kind: _, ...computed } = retry;
  return { ...own, retry: computed };
}

function unknown(destination: string, names: readonly string[]): string {
  const nearest = nearestName(destination, names);
  const hint = nearest === undefined ? `known are ${names.join(", ") || "none"}` : `did you mean ${nearest}?`;
  return `target.destination is ${JSON.stringify(destination)}, but there is no such destination: ${hint}`;
}
