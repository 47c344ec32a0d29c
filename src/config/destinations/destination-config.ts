import { addressOfType } from "../reading/open-outbox-variables.ts";
import type { Settings } from "../settings/settings.ts";
import { orList } from "../settings/value-types.ts";
import type { DestinationConfig, WrittenDestination } from "./destination-scheme.ts";
import { kafkaAt } from "./kafka-scheme.ts";
import { rabbitAt } from "./rabbitmq-scheme.ts";
import { SCHEMES } from "./schemes.ts";

const EXAMPLES = SCHEMES.map(({ example }) => example);

/**
 * The single destination that the settings describe; null when `problems` say why there is none. Without a name it is
 * named after its kind.
 */
export function destinationConfig(settings: Settings, problems: string[], name?: string): DestinationConfig | null {
  const { KAFKA_BROKERS, OUTBOX_DESTINATION, PUBLISHER_TYPE, RABBITMQ_HOST } = settings;
  const common = { settings, problems };
  const withoutAddress = addressOfType(PUBLISHER_TYPE);
  if (withoutAddress !== null) return configuredByType(withoutAddress, common, name);
  if (OUTBOX_DESTINATION === undefined) {
    if (KAFKA_BROKERS !== undefined && RABBITMQ_HOST !== undefined) {
      problems.push("KAFKA_BROKERS and RABBITMQ_HOST name different destinations: keep one of them");
      return null;
    }
    if (RABBITMQ_HOST !== undefined) {
      return rabbitAt(RABBITMQ_HOST, { ...common, name: name ?? "rabbitmq", setting: "RABBITMQ_HOST", address: "" });
    }
    if (KAFKA_BROKERS !== undefined) {
      return kafkaAt(KAFKA_BROKERS, { ...common, name: name ?? "kafka", setting: "KAFKA_BROKERS", address: "" });
    }
    problems.push(
      `The destination is missing: set KAFKA_BROKERS=host:port, RABBITMQ_HOST, or OUTBOX_DESTINATION to ${orList(EXAMPLES)}`,
    );
    return null;
  }
  const address = withScheme(OUTBOX_DESTINATION, PUBLISHER_TYPE);
  if (PUBLISHER_TYPE !== undefined && !isOfType(address, PUBLISHER_TYPE)) {
    problems.push(
      `PUBLISHER_TYPE is ${JSON.stringify(PUBLISHER_TYPE)}, but OUTBOX_DESTINATION has another scheme: remove one of them`,
    );
    return null;
  }
  const config = configured({ ...common, setting: "OUTBOX_DESTINATION", address }, name);
  if (config !== null && KAFKA_BROKERS !== undefined && !isAt(config, KAFKA_BROKERS)) {
    problems.push("KAFKA_BROKERS and OUTBOX_DESTINATION name different destinations: keep one of them");
  }
  if (
    config !== null &&
    RABBITMQ_HOST !== undefined &&
    !config.addresses.some((it) => it.startsWith(`${RABBITMQ_HOST}:`))
  ) {
    problems.push("RABBITMQ_HOST and OUTBOX_DESTINATION name different destinations: keep one of them");
  }
  return config;
}

/** The type decides: the Open Outbox Relay does not read the URL then either, and a deployment can have kept one. */
function configuredByType(
  address: string,
  common: Pick<WrittenDestination, "settings" | "problems">,
  name: string | undefined,
): DestinationConfig | null {
  const { KAFKA_BROKERS, OUTBOX_DESTINATION, PUBLISHER_TYPE, RABBITMQ_HOST } = common.settings;
  const other = KAFKA_BROKERS === undefined ? (RABBITMQ_HOST === undefined ? null : "RABBITMQ_HOST") : "KAFKA_BROKERS";
  if (other !== null) {
    common.problems.push(
      `PUBLISHER_TYPE (${PUBLISHER_TYPE}) and ${other} name different destinations: keep one of them`,
    );
    return null;
  }
  const config = configured({ ...common, setting: "PUBLISHER_TYPE", address }, name);
  const isUnused = OUTBOX_DESTINATION !== undefined && !OUTBOX_DESTINATION.toLowerCase().startsWith(address);
  if (config === null || !isUnused) return config;
  const unused = `PUBLISHER_TYPE is ${PUBLISHER_TYPE}, so the destination's URL has no effect`;
  return { ...config, warnings: [...config.warnings, unused] };
}

/** Whether the type names this address's kind or scheme. */
function isOfType(address: string, written: string): boolean {
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(address)?.[1]?.toLowerCase() ?? "";
  const type = written.toLowerCase();
  const kind = SCHEMES.find(({ schemes }) => schemes.includes(scheme))?.kind;
  return type === scheme || type === kind || SCHEMES.some((it) => it.kind === kind && it.schemes.includes(type));
}

function configured(written: Omit<WrittenDestination, "name">, name: string | undefined): DestinationConfig | null {
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(written.address)?.[1]?.toLowerCase();
  const found = SCHEMES.find(({ schemes }) => scheme !== undefined && schemes.includes(scheme));
  if (found !== undefined) return found.configure({ ...written, name: name ?? found.kind });
  // Shows only the scheme: the rest can contain a password.
  const what = scheme === undefined ? "has no scheme" : `starts with ${JSON.stringify(`${scheme}:`)}`;
  written.problems.push(`${written.setting} ${what}: write ${orList(EXAMPLES)}`);
  return null;
}

/** Adds the scheme that PUBLISHER_TYPE names, as in the Open Outbox Relay, where the URL has none. */
function withScheme(address: string, type: string | undefined): string {
  const isWhole = address.includes(":/") || type === undefined || /^(?:stdout|discard):/i.test(address);
  if (isWhole) return address;
  const byKind = SCHEMES.find(({ kind }) => kind === type.toLowerCase())?.schemes[0];
  return `${byKind ?? type}://${address}`;
}

function isAt({ addresses }: DestinationConfig, brokers: readonly string[]): boolean {
  const withPort = brokers.map((broker) => (/:\d+$/.test(broker) ? broker : `${broker}:9092`));
  return JSON.stringify(withPort) === JSON.stringify(addresses);
}
