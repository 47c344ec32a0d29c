import type { Publisher } from "../ports/publisher.ts";
import { type KafkaDestination, kafkaOptions } from "./kafka-destination.ts";
import type { Settings } from "./settings.ts";
import { orList } from "./value-types.ts";

/** Where the events go, with all that a publisher has to be told. */
export type DestinationConfig =
  | { readonly kind: "stdout"; readonly name: "stdout" }
  | KafkaDestination
  /** The program brings its own publisher; no setting leads to it. */
  | { readonly kind: "given"; readonly name: string; readonly open: () => Promise<Publisher> };

const SCHEMES = ["kafka://host:port", "stdout:"] as const;
const DEFAULT_KAFKA_PORT = 9092;

/** Null when `problems` say why there is none. */
export function destinationConfig(settings: Settings, problems: string[]): DestinationConfig | null {
  const chosen = chooseDestination(settings, problems);
  if (chosen === null) return null;
  if (chosen.kind === "kafka") return kafkaOptions(settings, chosen.brokers, problems);
  if (settings.DELIVERY === "exactly-once") {
    problems.push('DELIVERY is "exactly-once": stdout cannot do that, write at-least-once');
  }
  return { kind: "stdout", name: "stdout" };
}

type Chosen = { readonly kind: "stdout" } | { readonly kind: "kafka"; readonly brokers: readonly string[] };

function chooseDestination(settings: Settings, problems: string[]): Chosen | null {
  const { KAFKA_BROKERS, OUTBOX_DESTINATION } = settings;
  const byList = KAFKA_BROKERS === undefined ? null : kafkaAt("KAFKA_BROKERS", KAFKA_BROKERS, problems);
  if (OUTBOX_DESTINATION === undefined) {
    if (KAFKA_BROKERS === undefined && settings.RABBITMQ_HOST !== undefined) {
      problems.push(
        `RABBITMQ_HOST names a destination that this version does not have yet: set KAFKA_BROKERS=host:port, or OUTBOX_DESTINATION to ${orList(SCHEMES)}`,
      );
    } else if (KAFKA_BROKERS === undefined) {
      problems.push(
        `The destination is missing: set KAFKA_BROKERS=host:port, or OUTBOX_DESTINATION to ${orList(SCHEMES)}`,
      );
    }
    return byList;
  }
  const byAddress = chosenBy(OUTBOX_DESTINATION, settings.PUBLISHER_TYPE, problems);
  if (byList !== null && byAddress !== null && JSON.stringify(byList) !== JSON.stringify(byAddress)) {
    problems.push("KAFKA_BROKERS and OUTBOX_DESTINATION name different destinations: keep one of them");
  }
  return byAddress;
}

function chosenBy(address: string, publisherType: string | undefined, problems: string[]): Chosen | null {
  const whole =
    address.includes(":/") || !publisherType || address.startsWith("stdout:")
      ? address
      : `${publisherType}://${address}`;
  const [, scheme, rest] = /^([a-z][a-z0-9+.-]*):(?:\/\/)?(.*)$/is.exec(whole) ?? [];
  if (scheme?.toLowerCase() === "stdout" && rest === "") return { kind: "stdout" };
  if (scheme?.toLowerCase() === "kafka" && whole.includes("://")) {
    const brokers = (rest ?? "")
      .replace(/\/$/, "")
      .split(",")
      .map((broker) => broker.trim());
    return kafkaAt("OUTBOX_DESTINATION", brokers, problems);
  }
  // Only the scheme is shown: what follows may hold a password.
  const written = scheme === undefined ? "has no scheme" : `begins with ${JSON.stringify(`${scheme}:`)}`;
  problems.push(`OUTBOX_DESTINATION ${written}: write ${orList(SCHEMES)}`);
  return null;
}

function kafkaAt(setting: string, brokers: readonly string[], problems: string[]): Chosen | null {
  const addresses = brokers.map(brokerAddress);
  const bad = brokers.filter((_, index) => addresses[index] === null);
  if (bad.length === 0) return { kind: "kafka", brokers: addresses.filter((address) => address !== null) };
  const shown = bad.some((broker) => broker.includes("@"))
    ? "user and password go into KAFKA_USERNAME and KAFKA_PASSWORD"
    : bad.map((broker) => JSON.stringify(broker)).join(", ");
  problems.push(`${setting} has a broker that is not of the form host:port: ${shown}`);
  return null;
}

function brokerAddress(broker: string): string | null {
  const [, host, digits] = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::(\d{1,5}))?$/i.exec(broker) ?? [];
  const port = Number(digits ?? DEFAULT_KAFKA_PORT);
  return host !== undefined && port > 0 && port < 65_536 ? `${host}:${port}` : null;
}
