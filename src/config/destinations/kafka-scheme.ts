import type { KafkaPublisherOptions, KafkaSasl, KafkaTls } from "../../publishers/kafka/kafka-config.ts";
import { publishMsOf } from "../lease-timing.ts";
import type { Settings } from "../settings/settings.ts";
import { hostAndPort } from "./address.ts";
import type { DestinationConfig, DestinationScheme, WrittenDestination } from "./destination-scheme.ts";
import { clientCredentials } from "./oauth-token.ts";

const DEFAULT_PORT = 9_092;

/** Kafka clusters, from `kafka://` addresses. */
export const kafkaScheme: DestinationScheme = {
  kind: "kafka",
  schemes: ["kafka"],
  example: "kafka://host:port",
  configure(written) {
    const listed = /^kafka:\/\/(.*?)\/?$/i.exec(written.address)?.[1]?.split(",") ?? [""];
    return kafkaAt(
      listed.map((broker) => broker.trim()),
      written,
    );
  },
};

/** A Kafka destination from a list of `host:port`. */
export function kafkaAt(
  brokers: readonly string[],
  { name, problems, setting, settings }: WrittenDestination,
): DestinationConfig | null {
  const addresses = brokers.map((broker) => hostAndPort(broker, DEFAULT_PORT));
  const bad = brokers.filter((_, index) => addresses[index] === null);
  if (bad.length > 0) {
    const shown = bad.some((broker) => broker.includes("@"))
      ? "set user and password as KAFKA_USERNAME and KAFKA_PASSWORD"
      : bad.map((broker) => JSON.stringify(broker)).join(", ");
    problems.push(`${setting} has a broker that is not of the form host:port: ${shown}`);
    return null;
  }
  const options = kafkaOptions(
    name,
    settings,
    addresses.filter((address) => address !== null),
    problems,
  );
  return {
    kind: "kafka",
    name,
    addresses: options.brokers,
    isExactlyOnce: options.delivery === "exactly-once",
    warnings: warningsOf(options),
    options,
    async open() {
      const { loadKafka } = await import("../../publishers/kafka/kafka-client.ts");
      await loadKafka();
      const { kafkaPublisher } = await import("../../publishers/kafka/kafka-publisher.ts");
      return kafkaPublisher(options);
    },
    topicFix: "TOPICS_CREATE=true   # or create them: kafka-topics.sh --create --topic {topic}",
    ...(options.createTopics === true
      ? {}
      : {
          missingTopics: async (topics) => {
            const { missingTopics } = await import("../../publishers/kafka/kafka-topics.ts");
            return await missingTopics(options, topics);
          },
        }),
  };
}

function warningsOf({ sasl, tls }: KafkaPublisherOptions): string[] {
  if (sasl === undefined || tls !== false || sasl.mechanism.startsWith("SCRAM")) return [];
  return ["KAFKA_PASSWORD or the token goes to the brokers unencrypted: set KAFKA_SSL=true"];
}

function kafkaOptions(
  name: string,
  settings: Settings,
  brokers: readonly string[],
  problems: string[],
): KafkaPublisherOptions {
  const { DELIVERY, KAFKA_COMPRESSION, KAFKA_LEDGER_TOPIC, SERVICE_NAME, TOPICS_CREATE } = settings;
  const tls = tlsOf(settings, problems);
  const sasl = saslOf(settings, problems);
  return {
    name,
    brokers,
    service: SERVICE_NAME,
    delivery: DELIVERY ?? "exactly-once",
    tls,
    ...(sasl === null ? {} : { sasl }),
    ...(TOPICS_CREATE === undefined ? {} : { createTopics: TOPICS_CREATE }),
    ...(KAFKA_LEDGER_TOPIC === undefined ? {} : { ledger: { topic: KAFKA_LEDGER_TOPIC } }),
    ...(KAFKA_COMPRESSION === undefined ? {} : { compression: KAFKA_COMPRESSION }),
    ...timeoutsFor(publishMsOf(settings)),
  };
}

/** The client must time out, with its reason, before the engine gives up the publish. */
function timeoutsFor(publishMs: number): { requestTimeoutMs: number; connectTimeoutMs: number } {
  return { requestTimeoutMs: Math.round(publishMs * 0.8), connectTimeoutMs: Math.round(publishMs * 0.6) };
}

function tlsOf(settings: Settings, problems: string[]): boolean | KafkaTls {
  const { KAFKA_SSL, KAFKA_SSL_CA: ca, KAFKA_SSL_CERT: cert, KAFKA_SSL_KEY: key } = settings;
  const passphrase = settings.KAFKA_SSL_KEY_PASSPHRASE;
  if ((cert === undefined) !== (key === undefined)) {
    const [there, missing] =
      cert === undefined ? ["KAFKA_SSL_KEY", "KAFKA_SSL_CERT"] : ["KAFKA_SSL_CERT", "KAFKA_SSL_KEY"];
    problems.push(`${there} is set but ${missing} is not: a certificate and its key only work together`);
  }
  const given = Object.entries({ ca, cert, key, passphrase }).filter(([, value]) => value !== undefined);
  if (given.length > 0 && KAFKA_SSL === false) {
    problems.push('KAFKA_SSL is "false" but certificates are set: remove one or the other');
  }
  if (given.length > 0) return Object.fromEntries(given) as KafkaTls;
  return KAFKA_SSL ?? false;
}

function saslOf(settings: Settings, problems: string[]): KafkaSasl | null {
  const { KAFKA_USERNAME: username, KAFKA_PASSWORD: password } = settings;
  const mechanism = settings.KAFKA_SASL_MECHANISM ?? impliedMechanism(settings);
  if (password !== undefined && username === undefined) {
    problems.push("KAFKA_PASSWORD is set but KAFKA_USERNAME is not: set both or neither");
    return null;
  }
  if (mechanism === null) return null;
  if (mechanism === "OAUTHBEARER") return oauthOf(settings, problems);
  if (username === undefined || password === undefined) {
    const missing = username === undefined ? "KAFKA_USERNAME" : "KAFKA_PASSWORD";
    problems.push(`KAFKA_SASL_MECHANISM ${mechanism} needs KAFKA_USERNAME and KAFKA_PASSWORD: ${missing} is missing`);
    return null;
  }
  return { mechanism, username, password };
}

function impliedMechanism(settings: Settings): "PLAIN" | "OAUTHBEARER" | null {
  if (settings.KAFKA_OAUTH_TOKEN !== undefined || settings.KAFKA_OAUTH_TOKEN_URL !== undefined) return "OAUTHBEARER";
  return settings.KAFKA_USERNAME === undefined ? null : "PLAIN";
}

function oauthOf(settings: Settings, problems: string[]): KafkaSasl | null {
  const { KAFKA_OAUTH_TOKEN, KAFKA_OAUTH_TOKEN_URL, KAFKA_OAUTH_CLIENT_ID, KAFKA_OAUTH_CLIENT_SECRET } = settings;
  if (KAFKA_OAUTH_TOKEN !== undefined) return { mechanism: "OAUTHBEARER", token: KAFKA_OAUTH_TOKEN };
  if (!KAFKA_OAUTH_TOKEN_URL || !KAFKA_OAUTH_CLIENT_ID || !KAFKA_OAUTH_CLIENT_SECRET) {
    problems.push(
      "KAFKA_SASL_MECHANISM OAUTHBEARER needs KAFKA_OAUTH_TOKEN, or KAFKA_OAUTH_TOKEN_URL with KAFKA_OAUTH_CLIENT_ID and KAFKA_OAUTH_CLIENT_SECRET",
    );
    return null;
  }
  const url = URL.parse(KAFKA_OAUTH_TOKEN_URL);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    problems.push("KAFKA_OAUTH_TOKEN_URL is not a URL: write one such as https://host/token");
    return null;
  }
  const token = clientCredentials({
    url: url.href,
    clientId: KAFKA_OAUTH_CLIENT_ID,
    clientSecret: KAFKA_OAUTH_CLIENT_SECRET,
    scope: settings.KAFKA_OAUTH_SCOPE ?? null,
  });
  return { mechanism: "OAUTHBEARER", token };
}
