import { connectionCause, connectionText } from "../../core/connection-cause.ts";
import { reasonOf } from "../../core/errors.ts";
import type { Message } from "../../core/event.ts";
import { type Failed, type Outcome, rejected, retry, skipped } from "../../core/outcome.ts";
import { serverText } from "../../core/server-text.ts";
import { describeHosts, type RabbitSettings } from "./rabbitmq-config.ts";

/** The fields of the client's errors that are read. `code` of a server's error is its reply code. */
interface ClientError extends Error {
  readonly code?: unknown;
  readonly errors?: unknown;
}

/** The server has a memory or disk alarm and blocks publishers. */
export class BlockedError extends Error {}

/** No queue is bound for this routing key, which affects every event of the topic. */
export function unroutable(settings: RabbitSettings, topic: string, said: string): Failed {
  const where = `exchange "${settings.exchange}" has no queue for the routing key "${topic}"`;
  return retry(`${where} (${said}): bind a queue to it`, { scope: "topic", errorType: "NO_ROUTE" });
}

/** A queue refused the message: it is full with `reject-publish`, or it failed. */
export function refused({ exchange }: RabbitSettings, topic: string): Failed {
  const what = `a queue behind exchange "${exchange}" refused a message with the routing key "${topic}" (nack)`;
  return retry(`${what}: check whether a queue is full`, { errorType: "NACK" });
}

/**
 * The outcome that the end of a connection or channel means for an unconfirmed or unsent message. One message can close
 * the channel for all others: if the server's error identifies it, the others are skipped.
 */
export function outcomeOf(settings: RabbitSettings, error: unknown, { payload, topic }: Message): Outcome {
  const { code, message: said } = mainError(error);
  const sizeMax = code === 406 ? /message size \d+ .*max size (\d+)/.exec(said)?.[1] : undefined;
  if (sizeMax !== undefined) {
    if (payload.length <= Number(sizeMax)) return skipped;
    const reason = `the payload has ${payload.length} bytes, but RabbitMQ allows ${sizeMax} (max_message_size)`;
    return rejected(reason, { errorType: "MESSAGE_TOO_LARGE" });
  }
  const refusedTopic = code === 403 ? /access to topic '(.*)' in exchange/.exec(said)?.[1] : undefined;
  if (refusedTopic !== undefined) {
    if (refusedTopic !== topic) return skipped;
    return retry(serverText(said), { scope: "topic", errorType: "ACCESS_REFUSED", error });
  }
  return retry(connectionReason(settings, error), { scope: "destination", error });
}

/** Why there is no usable connection, in one line that names the setting to check and shows no secret. */
export function connectionReason(settings: RabbitSettings, error: unknown): string {
  return connectionText(`RabbitMQ at ${describeHosts(settings)}`, causeOf(settings, error));
}

/** Whether the login succeeded but the exchange does not exist. */
export function isMissing(error: unknown): boolean {
  return mainError(error).code === 404;
}

const CHECKED = {
  address: "host and port",
  trust: "tls.ca",
  identity: "tls.cert and tls.key",
  serverName: "tls.servername",
};

function causeOf(settings: RabbitSettings, error: unknown): string {
  const { exchange, username, vhost } = settings;
  const { code, message: said } = mainError(error);
  if (error instanceof BlockedError) return `it blocks publishers: ${said}`;
  if (code === 404) {
    const way = "create it (durable, type topic), or add declare=true to the address";
    return `exchange "${exchange}" does not exist in virtual host "${vhost}": ${way} (${said})`;
  }
  if (code === 406)
    return `the exchange or queue exists with other properties than declared: remove declare=true, or correct it (${said})`;
  if (/ACCESS.REFUSED.*Login was refused/i.test(said)) return `user "${username}" or the password is wrong`;
  if (/^Expected ConnectionOpenOk/.test(said)) {
    return `virtual host "${vhost}" does not exist, or user "${username}" has no access to it`;
  }
  if (/Socket closed abruptly/.test(said) && settings.tls === null) {
    return "the server closed the connection during the handshake: if the port uses TLS, write amqps:";
  }
  if (/Frame size \d+ exceeds|Invalid frame/.test(said))
    return "the server that answers there is not RabbitMQ: check host and port";
  if (/wrong version number|packet length too long/.test(said)) return "the port does not use TLS: write amqp:";
  return connectionCause(error, CHECKED) ?? said;
}

/**
 * The error that decides. Of several hosts it is the last one, because the others may be down on purpose. Node combines
 * the errors of IPv4 and IPv6.
 */
function mainError(error: unknown): { readonly code: unknown; readonly message: string } {
  const { code, errors } = (error instanceof Error ? error : {}) as ClientError;
  const inner: unknown = Array.isArray(errors) ? errors.at(-1) : undefined;
  return inner === undefined ? { code, message: reasonOf(error) } : mainError(inner);
}
