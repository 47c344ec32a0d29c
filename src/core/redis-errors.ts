import { connectionCause, connectionText, errorsIn } from "./connection-cause.ts";

/** What a person does about an answer that concerns the whole server, by the word that it begins with. */
export const SERVER_ADVICE: Readonly<Record<string, string>> = {
  READONLY: "this is a replica: write the address of the primary",
  LOADING: "Redis is still loading its data",
  MASTERDOWN: "this is a replica that lost its primary",
  MISCONF: "Redis cannot save its data: look at its log",
  NOREPLICAS: "too few replicas are connected (min-replicas-to-write)",
  BUSY: "a script keeps Redis busy",
  UNKILLABLE: "a script keeps Redis busy",
  NOAUTH: "Redis wants a password: set it",
  WRONGPASS: "check user and password",
  DENIED: "Redis is in protected mode and takes local clients only",
  MOVED: "this is a node of a cluster, which is not supported",
  ASK: "this is a node of a cluster, which is not supported",
  CLUSTERDOWN: "the cluster does not serve all its slots",
  TRYAGAIN: "the cluster is moving slots",
};

/** What Redis itself answered, or null when it did not: then nobody knows what took effect. */
export function answerIn(error: unknown): string | null {
  return error instanceof Error && error.name === "ReplyError" ? error.message : null;
}

/** The word that an answer of Redis begins with. */
export function wordOf(said: string): string {
  return /^-?([A-Z]+)/.exec(said)?.[1] ?? "ERR";
}

interface Server {
  /** For people: hosts and ports. */
  readonly hosts: string;
  readonly password: string | null;
  readonly hasTls: boolean;
  /** By the word that an answer begins with. */
  readonly advice: Readonly<Record<string, string>>;
}

/** Why there is no connection, in one line that names the setting to look at and no secret. */
export function redisConnectionReason(server: Server, error: unknown): string {
  const { hosts, password } = server;
  return connectionText(`Redis at ${hosts}`, causeOf(server, error), password ? [password] : []);
}

const CHECKED = { address: "the address", trust: "the certificates to trust", identity: "the client certificate" };

function causeOf({ advice, hasTls }: Server, error: unknown): string {
  const errors = errorsIn(error);
  const answer = errors.map(answerIn).find((text) => text !== null);
  if (answer) {
    const what = advice[wordOf(answer)];
    return what === undefined ? answer : `${answer}; ${what}`;
  }
  const network = connectionCause(error, CHECKED);
  if (network !== null) return network;
  const first = errors[0]?.message ?? "the connection failed";
  if (/Unknown RESP type|Protocol error, got/.test(first)) return "what answers there is no Redis: check host and port";
  if (!/Connection is closed|isn't writeable/.test(first)) return first;
  return `the server closed the connection${hasTls ? "" : ": it is going down, or wants TLS (rediss)"}`;
}
