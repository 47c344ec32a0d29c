import { RelayError, reasonOf } from "../../core/errors.ts";
import type { Message } from "../../core/event.ts";
import { type Failed, type Outcome, rejected, retry, skipped } from "../../core/outcome.ts";
import { describeHosts, type RabbitSettings } from "./rabbitmq-config.ts";

/** What the client throws, as far as we look at it. The server's own errors have the number of its answer as code. */
interface ClientError extends Error {
  readonly code?: unknown;
  readonly errors?: unknown;
}

/** The server has run out of memory or disk and reads nothing that is published. */
export class BlockedError extends Error {}

const REASON_LENGTH_MAX = 500;

/** No queue is bound for this routing key. Every event of the topic meets the same. */
export function unroutable(settings: RabbitSettings, topic: string, said: string): Failed {
  const where = `exchange "${settings.exchange}" has no queue for the routing key "${topic}"`;
  return retry(`${where} (${said}): bind one`, { scope: "topic", errorType: "NO_ROUTE" });
}

/** A queue refused it: it is full and set to refuse, or it failed. */
export function refused({ exchange }: RabbitSettings, topic: string): Failed {
  const what = `a queue behind exchange "${exchange}" refused a message with the routing key "${topic}" (nack)`;
  return retry(`${what}: is it full?`, { errorType: "NACK" });
}

/**
 * What the end of a connection or channel means for a message that was on it unconfirmed, or still to be sent. One
 * message can close the channel under all others: where the server's words tell which one, the others are not blamed.
 */
export function outcomeOf(settings: RabbitSettings, error: unknown, { payload, topic }: Message): Outcome {
  const { code, message: said } = mainError(error);
  const sizeMax = code === 406 ? /message size \d+ .*max size (\d+)/.exec(said)?.[1] : undefined;
  if (sizeMax !== undefined) {
    if (payload.length <= Number(sizeMax)) return skipped;
    const reason = `the payload has ${payload.length} bytes, RabbitMQ takes ${sizeMax} (max_message_size)`;
    return rejected(reason, { errorType: "MESSAGE_TOO_LARGE" });
  }
  const refusedTopic = code === 403 ? /access to topic '(.*)' in exchange/.exec(said)?.[1] : undefined;
  if (refusedTopic !== undefined) {
    if (refusedTopic !== topic) return skipped;
    return retry(oneLine(said), { scope: "topic", errorType: "ACCESS_REFUSED", error });
  }
  return retry(connectionReason(settings, error), { scope: "destination", error });
}

export function unreachable(settings: RabbitSettings, error: unknown): RelayError {
  return new RelayError("DESTINATION_UNREACHABLE", `${connectionReason(settings, error)}.`, { cause: error });
}

/** Why there is no usable connection, in one line that names the setting to look at and no secret. */
export function connectionReason(settings: RabbitSettings, error: unknown): string {
  return `RabbitMQ at ${describeHosts(settings)}: ${oneLine(causeOf(settings, error))}`;
}

function causeOf(settings: RabbitSettings, error: unknown): string {
  const { exchange, username, vhost } = settings;
  const { code, message: said } = mainError(error);
  if (error instanceof BlockedError) return `it takes no messages: ${said}`;
  if (code === 404) {
    const way = "create it (durable, type topic), or add declare=true to the address";
    return `exchange "${exchange}" does not exist in virtual host "${vhost}": ${way} (${said})`;
  }
  if (code === 406) return `what is there is not as declared: remove declare=true, or correct it (${said})`;
  if (/ACCESS.REFUSED.*Login was refused/i.test(said)) return `user "${username}" or the password is refused`;
  if (/^Expected ConnectionOpenOk/.test(said)) {
    return `virtual host "${vhost}" does not exist, or user "${username}" may not use it`;
  }
  if (/Socket closed abruptly/.test(said) && settings.tls === null) {
    return "the connection was closed while it opened; is it a port for TLS? Then write amqps:";
  }
  if (/wrong version number|packet length too long/.test(said)) return "the port speaks no TLS: write amqp:";
  return said;
}

/** Of several hosts the last error tells: the others may be down on purpose. Node packs both kinds of IP into one. */
function mainError(error: unknown): { readonly code: unknown; readonly message: string } {
  const { code, errors } = (error instanceof Error ? error : {}) as ClientError;
  const inner: unknown = Array.isArray(errors) ? errors.at(-1) : undefined;
  return inner === undefined ? { code, message: reasonOf(error) } : mainError(inner);
}

function oneLine(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length <= REASON_LENGTH_MAX ? line : `${line.slice(0, REASON_LENGTH_MAX - 1)}…`;
}
