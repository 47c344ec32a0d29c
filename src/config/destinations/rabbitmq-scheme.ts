import type { RabbitPublisherOptions, RabbitTls } from "../../publishers/rabbitmq/rabbitmq-config.ts";
import { publishMsOf } from "../lease-timing.ts";
import type { Settings } from "../settings/settings.ts";
import { duration, flag, wholeNumber } from "../settings/value-types.ts";
import { hostAndPort, parseAddress } from "./address.ts";
import {
  type DestinationConfig,
  type DestinationScheme,
  refuseExactlyOnce,
  type WrittenDestination,
} from "./destination-scheme.ts";

const PORT = 5_672;
const TLS_PORT = 5_671;
const NAME_BYTES_MAX = 255;

/** A server and login, from an address or from the RABBITMQ settings. */
interface RabbitServer {
  readonly hosts: readonly string[];
  readonly isEncrypted: boolean;
  readonly username: string | undefined;
  readonly password: string | undefined;
  /** Empty: use the settings' one. */
  readonly vhost: string;
  readonly parameters: ReadonlyMap<string, string>;
}

/** RabbitMQ exchanges, from `amqp://` addresses. */
export const rabbitScheme: DestinationScheme = {
  kind: "rabbitmq",
  schemes: ["amqp", "amqps"],
  example: "amqp://host:port/vhost?exchange=NAME",
  configure(written) {
    const isEncrypted = /^amqps:/i.test(written.address);
    const address = parseAddress(written, {
      defaultPort: isEncrypted ? TLS_PORT : PORT,
      parameters: ["exchange", "declare", "queue", "heartbeat", "connectTimeout"],
    });
    if (address === null) return null;
    return rabbitConfig(written, {
      hosts: address.hosts,
      isEncrypted,
      username: address.username ?? undefined,
      password: address.password ?? undefined,
      vhost: address.path,
      parameters: address.parameters,
    });
  },
};

/** A RabbitMQ destination from RABBITMQ_HOST and the settings beside it. */
export function rabbitAt(host: string, written: WrittenDestination): DestinationConfig | null {
  const { settings, problems, setting } = written;
  const hasCertificates = settings.RABBITMQ_SSL_CA !== undefined || settings.RABBITMQ_SSL_CERT !== undefined;
  const isEncrypted = settings.RABBITMQ_SSL ?? hasCertificates;
  const address = hostAndPort(host, settings.RABBITMQ_PORT ?? (isEncrypted ? TLS_PORT : PORT));
  if (address === null) {
    problems.push(`${setting} is not a host name: write only the name, and set the port as RABBITMQ_PORT`);
    return null;
  }
  const server = { hosts: [address], isEncrypted, username: undefined, password: undefined, vhost: "" };
  return rabbitConfig(written, { ...server, parameters: new Map() });
}

function rabbitConfig(written: WrittenDestination, server: RabbitServer): DestinationConfig | null {
  refuseExactlyOnce(written, "RabbitMQ");
  const options = rabbitOptions(written, server);
  if (options === null) return null;
  const isUnencrypted = options.password !== undefined && !server.isEncrypted && !server.hosts.every(isLocal);
  return {
    kind: "rabbitmq",
    name: written.name,
    addresses: server.hosts,
    isExactlyOnce: false,
    warnings: isUnencrypted
      ? ["The password goes to RabbitMQ unencrypted: write amqps:, or set RABBITMQ_SSL=true"]
      : [],
    options,
    async open() {
      const { loadAmqp } = await import("../../publishers/rabbitmq/rabbitmq-client.ts");
      await loadAmqp();
      const { rabbitPublisher } = await import("../../publishers/rabbitmq/rabbitmq-publisher.ts");
      return rabbitPublisher(options);
    },
  };
}

function isLocal(address: string): boolean {
  return /^(?:127\.[\d.]+|localhost|\[::1\]):\d+$/.test(address);
}

/** Null when `problems` say what is wrong. */
function rabbitOptions(written: WrittenDestination, server: RabbitServer): RabbitPublisherOptions | null {
  const { name, problems, setting, settings } = written;
  const before = problems.length;
  const { parameters } = server;
  const parameter = <T>(key: string, type: { parse(text: string): T }): T | undefined => {
    const text = parameters.get(key);
    if (text === undefined) return undefined;
    try {
      return type.parse(text);
    } catch {
      problems.push(`${setting} has the parameter ${key}=${text}: ${EXPECTED[key]}`);
      return undefined;
    }
  };
  const exchange = parameters.get("exchange") ?? settings.RABBITMQ_EXCHANGE ?? "";
  const queue = parameters.get("queue") ?? settings.RABBITMQ_QUEUE;
  const declare = parameter("declare", flag()) ?? settings.RABBITMQ_DECLARE ?? false;
  const heartbeatSeconds = parameter("heartbeat", wholeNumber(1, 3_600));
  const connectTimeoutMs = parameter("connectTimeout", duration({ minMs: 10, maxMs: 3_600_000 }));
  const username = server.username ?? settings.RABBITMQ_USERNAME;
  const password = server.password ?? settings.RABBITMQ_PASSWORD;
  // The default exchange would take a routing key as the name of a queue.
  if (exchange === "") problems.push(`${setting} names no exchange: add ?exchange=NAME, or set RABBITMQ_EXCHANGE`);
  if (queue !== undefined && !declare) problems.push(`${setting} has a queue, which only works with declare=true`);
  for (const [what, text] of Object.entries({ exchange, queue, vhost: server.vhost })) {
    if (Buffer.byteLength(text ?? "") > NAME_BYTES_MAX)
      problems.push(`${setting} has a ${what} of more than 255 bytes`);
  }
  if (username !== undefined && password === undefined) {
    problems.push(`${setting} has a user but no password: write user:password@host, or set RABBITMQ_PASSWORD`);
  }
  const tls = tlsOf(server, settings, problems);
  if (problems.length > before) return null;
  return {
    name,
    hosts: server.hosts,
    exchange,
    vhost: server.vhost || (settings.RABBITMQ_VHOST ?? "/"),
    declare,
    tls,
    ...(queue === undefined ? {} : { queue }),
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    ...(heartbeatSeconds === undefined ? {} : { heartbeatSeconds }),
    connectTimeoutMs: connectTimeoutMs ?? Math.round(publishMsOf(settings) * 0.6),
    connectionName: settings.SERVICE_NAME,
  };
}

const EXPECTED: Readonly<Record<string, string>> = {
  declare: "write true or false",
  heartbeat: "write a number of seconds from 1 to 3600",
  connectTimeout: "write a duration such as 500ms or 3s",
};

function tlsOf({ isEncrypted }: RabbitServer, settings: Settings, problems: string[]): boolean | RabbitTls {
  const { RABBITMQ_SSL_CA: ca, RABBITMQ_SSL_CERT: cert, RABBITMQ_SSL_KEY: key } = settings;
  if ((cert === undefined) !== (key === undefined)) {
    problems.push("RABBITMQ_SSL_CERT and RABBITMQ_SSL_KEY only work together: set both or neither");
  }
  const given = Object.entries({ ca, cert, key }).filter(([, value]) => value !== undefined);
  if (given.length > 0 && !isEncrypted) {
    problems.push("Certificates for RabbitMQ are set, but the connection is unencrypted: write amqps:");
  }
  return isEncrypted && given.length > 0 ? (Object.fromEntries(given) as RabbitTls) : isEncrypted;
}
