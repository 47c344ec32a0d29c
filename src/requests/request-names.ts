import { RelayError } from "../core/errors.ts";

/** One bounded context's requests: where they are written, and under which names their traces are kept. */
export interface RequestContext {
  readonly context: string;
  readonly aggregate: string;
  /** Of the keys in Redis and of the metrics. */
  readonly namespace: string;
}

const NAME = /^[A-Za-z0-9_]+(?:[-.][A-Za-z0-9_]+)*$/;

/** From `<context>.<aggregate>`; what stands behind the last dot is the aggregate. Throws CONFIG_INVALID. */
export function requestContext(name: string, namespace: string = name): RequestContext {
  const [, context, aggregate] = /^(.+)\.([^.]+)$/.exec(name) ?? [];
  if (context === undefined || aggregate === undefined || !NAME.test(name)) {
    throw new RelayError(
      "CONFIG_INVALID",
      `${JSON.stringify(name)} is no <context>.<aggregate>, as in payment.payout.`,
    );
  }
  if (!/^[^\s{}]{1,100}$/.test(namespace)) {
    throw new RelayError("CONFIG_INVALID", `The namespace ${JSON.stringify(namespace)} has a space or a brace.`);
  }
  return { context, aggregate, namespace };
}

export const contextName = ({ context, aggregate }: RequestContext) => `${context}.${aggregate}`;

/** The subscription group, and the name of its checkpoint. */
export const checkpointName = (context: RequestContext) => `${contextName(context)}.relay.checkpoint`;

/** What the names of all request streams of the context begin with. Up to its dash it is their category. */
export const streamPrefix = (context: RequestContext) => `${contextName(context)}.request-`;

export const streamOf = (context: RequestContext, tenant: string, requestId: string) =>
  `${streamPrefix(context)}${tenant}-${requestId}`;

/** There from the moment at which the event's job is. The braces are literal: a hash tag. */
export const dispatchedKey = ({ namespace }: RequestContext, tenant: string, eventId: string) =>
  `${namespace}:v1:{${tenant}}:dispatched:${eventId}`;

export const executeLockKey = ({ namespace }: RequestContext, tenant: string, requestId: string) =>
  `${namespace}:v1:{${tenant}}:execute-lock:${requestId}`;

/** What a worker finds in `job.data`: a reference and nothing else. */
export interface RequestReference {
  readonly tenant: string;
  readonly requestId: string;
}

export const EXECUTE_REQUEST = "execute-request";
