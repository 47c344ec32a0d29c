import { destinationConfig } from "../config/destinations/destination-config.ts";
import type { DestinationConfig } from "../config/destinations/destination-scheme.ts";
import { destinationsConfig } from "../config/destinations/destinations-config.ts";
import { publishMsOf } from "../config/lease-timing.ts";
import { secretsInAddress } from "../config/reading/address-secrets.ts";
import { ConfigProblems } from "../config/reading/config-problems.ts";
import { readSettings } from "../config/reading/read-settings.ts";
import type { Settings } from "../config/settings/settings.ts";
import type { Publisher } from "../ports/publisher.ts";
import type { IntentRelay } from "../routing/intent-relay.ts";

/** The destination of a function's relay. */
interface RelayDestination {
  readonly name: string;
  /** `host:port` each; empty when the address depends on the event. */
  readonly addresses: readonly string[];
  /** A publish is aborted after this time. */
  readonly publishMs: number;
  /** Secrets that no log line may show. */
  readonly secrets: readonly string[];
  open(): Promise<Publisher>;
}

/**
 * Resolves the relay's target. The environment adds settings of its kind (`KAFKA_USERNAME`, `HTTP_HEADERS` and the
 * like), and the address of a target that is only a name. Throws ConfigProblems.
 */
export function relayDestination(
  { target, type }: IntentRelay,
  env: Readonly<Record<string, string | undefined>>,
): RelayDestination {
  const { secrets, settings: read } = readSettings({ env });
  const problems: string[] = [];
  if (read.DELIVERY === "exactly-once") {
    problems.push(
      "DELIVERY is exactly-once, but a Lambda function delivers at least once: remove it and let receivers drop duplicates by the id",
    );
  }
  const settings: Settings = { ...read, DELIVERY: "at-least-once" };
  const found =
    "url" in target ? byAddress(target.url, settings, problems) : byName(target.destination, settings, problems);
  if (found === null || problems.length > 0) {
    throw new ConfigProblems(problems.map((problem) => `The relay of ${JSON.stringify(type)}: ${problem}`));
  }
  const own = "url" in target ? secretsInAddress(target.url) : [];
  return {
    name: found.name,
    addresses: found.addresses,
    publishMs: publishMsOf(settings),
    secrets: [...secrets, ...own],
    open: () => found.open(),
  };
}

function byAddress(url: string, settings: Settings, problems: string[]): DestinationConfig | null {
  const others = { KAFKA_BROKERS: undefined, OUTBOX_DESTINATIONS: undefined, RABBITMQ_HOST: undefined };
  const own: string[] = [];
  const found = destinationConfig({ ...settings, ...others, OUTBOX_DESTINATION: url }, own);
  problems.push(...own.map((problem) => problem.replaceAll("OUTBOX_DESTINATION", "target.url")));
  return found;
}

function byName(name: string, settings: Settings, problems: string[]): DestinationConfig | null {
  const known = destinationsConfig(settings, problems);
  const found = known.find((destination) => destination.name === name) ?? null;
  if (found === null && problems.length === 0) {
    const names = known.map((destination) => destination.name).join(", ");
    problems.push(`target.destination is ${JSON.stringify(name)}, but there is no such destination; known: ${names}`);
  }
  return found;
}
