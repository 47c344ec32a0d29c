import { RelayError } from "../core/errors.ts";
import type { RequestContext } from "../ports/request-queue.ts";

const NAME = /^[A-Za-z0-9_]+(?:[-.][A-Za-z0-9_]+)*$/;

/** Parses `<context>.<aggregate>`; the part after the last dot is the aggregate. Throws CONFIG_INVALID. */
export function requestContext(name: string, namespace: string = name): RequestContext {
  const [, context, aggregate] = /^(.+)\.([^.]+)$/.exec(name) ?? [];
  if (context === undefined || aggregate === undefined || !NAME.test(name)) {
    throw new RelayError(
      "CONFIG_INVALID",
      `${JSON.stringify(name)} is not of the form <context>.<aggregate>, as in payment.payout.`,
    );
  }
  if (!/^[^\s{}]{1,100}$/.test(namespace)) {
    throw new RelayError(
      "CONFIG_INVALID",
      `The namespace ${JSON.stringify(namespace)} contains a space or a brace, or is longer than 100 characters.`,
    );
  }
  return { context, aggregate, namespace };
}

/** `<context>.<aggregate>`. */
export const contextName = ({ context, aggregate }: RequestContext) => `${context}.${aggregate}`;

/** The subscription group, and the name of its checkpoint. */
export const checkpointName = (context: RequestContext) => `${contextName(context)}.relay.checkpoint`;

/** The prefix of the context's request streams. Without its dash it is their category. */
export const streamPrefix = (context: RequestContext) => `${contextName(context)}.request-`;

/** The stream of one request. */
export const streamOf = (context: RequestContext, tenant: string, requestId: string) =>
  `${streamPrefix(context)}${tenant}-${requestId}`;

/**
 * The marker key of a dispatched event: it exists as soon as the job does. The braces are literal, a Redis hash tag.
 */
export const dispatchedKey = ({ namespace }: RequestContext, tenant: string, eventId: string) =>
  `${namespace}:v1:{${tenant}}:dispatched:${eventId}`;

/** The key of the lock under which a worker executes a request. */
export const executeLockKey = ({ namespace }: RequestContext, tenant: string, requestId: string) =>
  `${namespace}:v1:{${tenant}}:execute-lock:${requestId}`;

/** `job.data` of a request job: a reference and nothing else, so that Redis holds no business data. */
export interface RequestReference {
  readonly tenant: string;
  readonly requestId: string;
}

/** The default job name. */
export const EXECUTE_REQUEST = "execute-request";
