import { matchesPattern } from "../core/type-pattern.ts";
import { intentRoute } from "../routing/intent-relay.ts";
import { nearestName } from "../routing/nearest-name.ts";
import { secretsInAddress } from "./address-secrets.ts";
import type { DestinationConfig } from "./destinations/destination-scheme.ts";
import { destinationsConfig } from "./destinations-config.ts";
import type { LoadedIntentRelay } from "./intent-relays.ts";
import { type RouteConfig, restrictedTo, routesConfig } from "./routes-config.ts";
import type { Settings } from "./settings.ts";

/**
 * Where events go. With intent relays, only what they take and what a written route takes: an intent without a relay is
 * to be told, not sent somewhere as it is. Beside subscribers of logs, too, what is in a queue goes only where a route says.
 */
export function waysConfig(
  settings: Settings,
  relays: readonly LoadedIntentRelay[],
  problems: string[],
): { readonly destinations: readonly DestinationConfig[]; readonly routes: readonly RouteConfig[] } {
  const { KAFKA_BROKERS, OUTBOX_DESTINATION, OUTBOX_DESTINATIONS, OUTBOX_ROUTES, RABBITMQ_HOST } = settings;
  const hasSubscribers = settings.OUTBOX_SUBSCRIBERS !== undefined;
  const isConfigured = [KAFKA_BROKERS, OUTBOX_DESTINATION, OUTBOX_DESTINATIONS, RABBITMQ_HOST].some(
    (it) => it !== undefined,
  );
  const bringsAll = relays.length > 0 && relays.every(({ relay }) => "url" in relay.target);
  const configured = bringsAll && !isConfigured ? [] : destinationsConfig(settings, problems);
  const destinations = [...configured, ...intentDestinations(relays, configured, settings, problems)];
  const isUnrouted = (relays.length > 0 || hasSubscribers) && OUTBOX_ROUTES === undefined;
  const written = isUnrouted ? [] : routesConfig(settings, destinations, problems);
  refuseRivals(relays, written, problems);
  const routes = [...intentRoutes(relays, destinations, problems), ...written];
  const only = settings.OUTBOX_ONLY ?? [];
  if (routes.length > 0 && restrictedTo(only, routes).length === 0) {
    problems.push(`OUTBOX_ONLY is ${only.join(",")}, which no route and no intent relay takes`);
  }
  return { destinations, routes };
}

/** Secrets in the addresses of targets, which no log line may show. */
export function intentSecrets(relays: readonly LoadedIntentRelay[]): string[] {
  return relays.flatMap(({ relay: { target } }) => ("url" in target ? secretsInAddress(target.url) : []));
}

/**
 * The destinations that relays bring with them, one each under the relay's own name: what happens at one target is no
 * business of the other intents.
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
      problems.push(`${file}: a destination is named ${name} already: rename the file, or use target.destination`);
      return [];
    }
    const own: string[] = [];
    const alone = { ...settings, OUTBOX_DESTINATION: undefined, KAFKA_BROKERS: undefined };
    const found = destinationsConfig({ ...alone, OUTBOX_DESTINATIONS: { [name]: { url: target.url } } }, own);
    problems.push(...own.map((problem) => `${file}: ${problem.replaceAll(`destinations.${name}.`, "target.")}`));
    return found;
  });
}

/** A route for each relay; no template for all messages has a say in them. */
function intentRoutes(
  relays: readonly LoadedIntentRelay[],
  destinations: readonly DestinationConfig[],
  problems: string[],
): readonly RouteConfig[] {
  const names = destinations.map(({ name }) => name);
  return relays.flatMap(({ file, name, relay }) => {
    const destination = "url" in relay.target ? name : relay.target.destination;
    if (!names.includes(destination)) {
      // Of a target of its own the reason is told already.
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

/** An event goes one way only, and the relay would take what the route is meant for. */
function refuseRivals(relays: readonly LoadedIntentRelay[], routes: readonly RouteConfig[], problems: string[]): void {
  for (const [index, { types }] of routes.entries()) {
    for (const { file, relay } of relays) {
      const isNamed = types?.some((pattern) => !pattern.includes("*") && matchesPattern(pattern, relay.type)) ?? false;
      if (isNamed) problems.push(`routes[${index}] and ${file} both take ${JSON.stringify(relay.type)}: keep one`);
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
  return `target.destination is ${JSON.stringify(destination)}, which no destination is named: ${hint}`;
}
