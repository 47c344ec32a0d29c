import { isIPv6 } from "node:net";
import { RelayError } from "../../core/errors.ts";
import type { TlsOptionsWithPassphrase } from "../../core/tls.ts";

/** TLS settings, in PEM. */
export type RabbitTls = TlsOptionsWithPassphrase;

/** Options of `rabbitPublisher`. */
export interface RabbitPublisherOptions {
  readonly name?: string;
  /** `host:port` of the nodes of one cluster, tried one after another. */
  readonly hosts: readonly string[];
  /** The exchange of all events; the routing key is the message's topic. */
  readonly exchange: string;
  readonly username?: string;
  readonly password?: string;
  readonly vhost?: string;
  readonly tls?: boolean | RabbitTls;
  /** Declares the exchange, durable and of type `topic`. Without it the exchange must exist. */
  readonly declare?: boolean;
  /** With `declare`: also declares a durable quorum queue of this name, bound to all routing keys. */
  readonly queue?: string;
  /** The heartbeat interval. Both sides close a connection that was silent for twice as long. */
  readonly heartbeatSeconds?: number;
  /** The timeout for a connection with login, for all hosts together. */
  readonly connectTimeoutMs?: number;
  /** The connections' name in the server's management UI. */
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

/** The protocol has one byte for the length of a name. */
export const NAME_BYTES_MAX = 255;

/** Below the engine's publish timeout of 5 s, so that a timeout is reported with its reason. */
const CONNECT_TIMEOUT_MS = 3_000;
const HEARTBEAT_SECONDS = 30;

/** Fills in the defaults; throws CONFIG_INVALID with the option's name. */
export function rabbitSettings(options: RabbitPublisherOptions): RabbitSettings {
  const { name = "rabbitmq", declare = false, queue = null, vhost = "/" } = options;
  check(isName(options.exchange), exchangeFault(options.exchange));
  check(queue === null || isName(queue), `queue has ${bytesOf(queue)} bytes, 1 to ${NAME_BYTES_MAX} are allowed`);
  check(queue === null || declare, "queue requires declare: the relay declares the queue or does not use it");
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

/** The default exchange would use the routing key as a queue name, which an event type is not. */
function exchangeFault(exchange: string | undefined): string {
  if (!exchange) return "exchange is missing: name the exchange for the events; the default exchange is not supported";
  return `exchange has ${bytesOf(exchange)} bytes, ${NAME_BYTES_MAX} are allowed`;
}

/** `host:port,host:port`. */
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
