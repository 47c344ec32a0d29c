import { isIPv6 } from "node:net";
import { RelayError } from "../../core/errors.ts";

export interface RabbitTls {
  /** PEM text, of one or several certificates. */
  readonly ca?: string | Buffer;
  readonly cert?: string | Buffer;
  readonly key?: string | Buffer;
  readonly passphrase?: string;
  /** The name that the servers' certificates bear, when it is not the name they are reached by. */
  readonly servername?: string;
  readonly rejectUnauthorized?: boolean;
}

export interface RabbitPublisherOptions {
  readonly name?: string;
  /** `host:port` of the nodes of one cluster, tried in turn. */
  readonly hosts: readonly string[];
  /** The exchange that takes all events; the routing key is the message's topic. */
  readonly exchange: string;
  readonly username?: string;
  readonly password?: string;
  readonly vhost?: string;
  readonly tls?: boolean | RabbitTls;
  /** Creates the exchange, durable and of type `topic`, where it is missing. Otherwise it has to be there. */
  readonly declare?: boolean;
  /** With `declare`: a durable quorum queue of this name too, bound to take everything. */
  readonly queue?: string;
  /** Both sides take a connection for dead that was silent for twice as long. */
  readonly heartbeatSeconds?: number;
  /** For a connection, logged in, to one of the hosts. */
  readonly connectTimeoutMs?: number;
  /** What the server's own lists call the connections. */
  readonly connectionName?: string;
}

export interface RabbitHost {
  readonly host: string;
  readonly port: number;
}

/** The options with every default filled in. */
export interface RabbitSettings {
  readonly name: string;
  readonly hosts: readonly RabbitHost[];
  readonly exchange: string;
  readonly username: string;
  readonly password: string;
  readonly vhost: string;
  readonly tls: RabbitTls | null;
  readonly isDeclared: boolean;
  readonly queue: string | null;
  readonly heartbeatSeconds: number;
  readonly connectTimeoutMs: number;
  readonly connectionName: string;
}

/** Names in the protocol have one byte for their length. */
export const NAME_BYTES_MAX = 255;

/** Below the engine's publish timeout of 5 s, so that a server's silence is told with its reason. */
const CONNECT_TIMEOUT_MS = 3_000;
const HEARTBEAT_SECONDS = 30;

/** Fills in the defaults; throws CONFIG_INVALID with the option's name. */
export function rabbitSettings(options: RabbitPublisherOptions): RabbitSettings {
  const { name = "rabbitmq", declare = false, queue = null, vhost = "/" } = options;
  check(isName(options.exchange), exchangeFault(options.exchange));
  check(queue === null || isName(queue), `queue has ${bytesOf(queue)} bytes, 1 to ${NAME_BYTES_MAX} are allowed`);
  check(queue === null || declare, "queue only works with declare: the relay makes the queue or knows nothing of it");
  check(isName(vhost), `vhost has ${bytesOf(vhost)} bytes, 1 to ${NAME_BYTES_MAX} are allowed`);
  return {
    name,
    hosts: hostsOf(options.hosts),
    exchange: options.exchange,
    username: options.username ?? "guest",
    password: options.password ?? "guest",
    vhost,
    tls: tlsOf(options.tls),
    isDeclared: declare,
    queue,
    heartbeatSeconds: countOf("heartbeatSeconds", options.heartbeatSeconds, HEARTBEAT_SECONDS, 3_600),
    connectTimeoutMs: countOf("connectTimeoutMs", options.connectTimeoutMs, CONNECT_TIMEOUT_MS, 3_600_000),
    connectionName: options.connectionName ?? "outbox-relay",
  };
}

/** The default exchange would take a routing key for the name of a queue: no event type is meant as one. */
function exchangeFault(exchange: string | undefined): string {
  if (!exchange) return "exchange is missing: name the exchange that takes the events; the nameless one is not used";
  return `exchange has ${bytesOf(exchange)} bytes, ${NAME_BYTES_MAX} are allowed`;
}

export function describeHosts({ hosts }: Pick<RabbitSettings, "hosts">): string {
  return hosts.map(({ host, port }) => `${isIPv6(host) ? `[${host}]` : host}:${port}`).join(",");
}

function check(isRight: boolean, what: string): asserts isRight {
  if (!isRight) throw new RelayError("CONFIG_INVALID", `RabbitMQ: ${what}.`);
}

function isName(text: string | undefined): boolean {
  return text !== undefined && text !== "" && bytesOf(text) <= NAME_BYTES_MAX;
}

function bytesOf(text: string | null): number {
  return Buffer.byteLength(text ?? "");
}

function hostsOf(hosts: readonly string[]): RabbitHost[] {
  check(Array.isArray(hosts) && hosts.length > 0, 'hosts is empty: name at least one as "host:port"');
  return hosts.map((written) => {
    const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([^:\s/]+)):(\d+)$/.exec(written) ?? [];
    const port = Number(digits);
    const host = bracketed ?? plain;
    check(host !== undefined && port > 0 && port < 65_536, `hosts: "${written}" is not of the form "host:port"`);
    return { host, port };
  });
}

function tlsOf(tls: boolean | RabbitTls | undefined): RabbitTls | null {
  if (tls === undefined || tls === false) return null;
  if (tls === true) return {};
  check((tls.cert === undefined) === (tls.key === undefined), "tls.cert and tls.key only work together");
  return tls;
}

function countOf(option: string, value: number | undefined, fallback: number, max: number): number {
  const count = value ?? fallback;
  const isRight = Number.isSafeInteger(count) && count > 0 && count <= max;
  check(isRight, `${option} is ${count}, a whole number from 1 to ${max} is expected`);
  return count;
}
