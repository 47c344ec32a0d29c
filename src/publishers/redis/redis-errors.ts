import { type Failed, rejected, retry, type Scope } from "../../core/outcome.ts";
import { describeHosts, type RedisSettings } from "./redis-config.ts";

interface Meaning {
  readonly scope: Scope;
  /** What a person does about it. */
  readonly advice: string;
}

const PERMISSION =
  "the user may not do this: grant XADD, SET, DEL, PEXPIRE, EVAL and EVALSHA on the stream and on the prefix";

/** By the word that an error of Redis begins with. What is not here concerns the stream that was written to. */
const MEANINGS: Readonly<Record<string, Meaning>> = {
  WRONGTYPE: { scope: "topic", advice: "the key exists and is no stream: rename one of them" },
  NOPERM: { scope: "topic", advice: PERMISSION },
  CROSSSLOT: { scope: "topic", advice: "the stream and its markers are in different slots" },
  OOM: { scope: "destination", advice: "Redis has used up its maxmemory: raise it, or set maxlen" },
  READONLY: { scope: "destination", advice: "this is a replica: write the address of the primary" },
  LOADING: { scope: "destination", advice: "Redis is still loading its data" },
  MASTERDOWN: { scope: "destination", advice: "this is a replica that lost its primary" },
  MISCONF: { scope: "destination", advice: "Redis cannot save its data: look at its log" },
  NOREPLICAS: { scope: "destination", advice: "too few replicas are connected (min-replicas-to-write)" },
  BUSY: { scope: "destination", advice: "a script keeps Redis busy" },
  UNKILLABLE: { scope: "destination", advice: "a script keeps Redis busy" },
  NOAUTH: { scope: "destination", advice: "Redis wants a password: set it" },
  WRONGPASS: { scope: "destination", advice: "check user and password" },
  DENIED: { scope: "destination", advice: "Redis is in protected mode and takes local clients only" },
  MOVED: { scope: "destination", advice: "this is a node of a cluster, which is not supported" },
  ASK: { scope: "destination", advice: "this is a node of a cluster, which is not supported" },
  CLUSTERDOWN: { scope: "destination", advice: "the cluster does not serve all its slots" },
  TRYAGAIN: { scope: "destination", advice: "the cluster is moving slots" },
};

const REASON_LENGTH_MAX = 500;

/** What an error that Redis answered means for an event that was to go to this stream. */
export function outcomeOf(said: string, stream: string): Failed {
  const text = said.replace(/^-/, "");
  const word = /^[A-Z]+/.exec(text)?.[0] ?? "ERR";
  if (/Protocol error: invalid (?:bulk|multibulk) length/.test(text)) {
    return rejected(`stream "${stream}": too large for Redis (proto-max-bulk-len)`, { errorType: "TOO_LARGE" });
  }
  const { scope, advice } = meaningOf(word, text);
  return retry(oneLine(`stream "${stream}": ${text}${advice === "" ? "" : `; ${advice}`}`), { scope, errorType: word });
}

function meaningOf(word: string, text: string): Meaning {
  if (/(?:can't|to) run (?:this|the) .*command/.test(text)) return { scope: "destination", advice: PERMISSION };
  if (/user executing the script can't access/.test(text)) return { scope: "topic", advice: PERMISSION };
  if (/unknown command|max number of clients/i.test(text)) return { scope: "destination", advice: "" };
  return MEANINGS[word] ?? { scope: "topic", advice: "" };
}

/** Whether Redis itself answered: then it is known what took effect. */
export function answerIn(error: unknown): string | null {
  return error instanceof Error && error.name === "ReplyError" ? error.message : null;
}

/** For an error before anything was sent: Redis could not be reached, or did not let us in. */
export function unreachable(settings: RedisSettings, error: unknown): Failed {
  return retry(connectionReason(settings, error), { scope: "destination", isOutside: true, error });
}

/** Why there is no connection, in one line that names the setting to look at and no secret. */
export function connectionReason(settings: RedisSettings, error: unknown): string {
  const text = oneLine(`Redis at ${describeHosts(settings)}: ${causeOf(settings, errorsIn(error))}`);
  return settings.password ? text.replaceAll(settings.password, "***") : text;
}

interface ClientError extends Error {
  readonly code?: unknown;
  readonly errors?: unknown;
}

function causeOf({ tls }: RedisSettings, errors: readonly ClientError[]): string {
  const answer = errors.map(answerIn).find((text) => text !== null);
  if (answer) {
    const word = /^[A-Z]+/.exec(answer)?.[0] ?? "";
    const advice = MEANINGS[word]?.advice;
    return advice === undefined ? answer : `${answer}; ${advice}`;
  }
  const system = errors.find(({ code }) => typeof code === "string");
  if (system !== undefined) return systemCause(String(system.code), system.message);
  const first = errors[0]?.message ?? "the connection failed";
  if (!/Connection is closed|isn't writeable/.test(first)) return first;
  return `the server closed the connection${tls === null ? ": it is going down, or wants TLS (rediss)" : ""}`;
}

function systemCause(code: string, message: string): string {
  if (code === "ECONNREFUSED") return `connection refused (${code}): no server listens there, check the address`;
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") return `the host name is unknown (${code}): check the address`;
  if (code === "ETIMEDOUT") return `no answer in time (${code}): check the address and the network`;
  if (/^ERR_(SSL|OSSL)|EPROTO/.test(code)) return `TLS failed (${code}): the port may not speak TLS`;
  if (/CERT|SIGNATURE|ISSUER|CA_KEY/.test(code)) return `${message} (${code}): check the certificates to trust`;
  return `${message} (${code})`;
}

/** An error and everything that it holds, outer ones last: what was first says more. */
function errorsIn(error: unknown): ClientError[] {
  const found: ClientError[] = [];
  const waiting = [error];
  while (waiting.length > 0) {
    const next = waiting.shift();
    if (!(next instanceof Error) || found.includes(next)) continue;
    const seen: ClientError = next;
    if (Array.isArray(seen.errors)) waiting.unshift(...seen.errors);
    else found.push(seen);
    if (seen.cause !== undefined) waiting.push(seen.cause);
  }
  return found;
}

function oneLine(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length <= REASON_LENGTH_MAX ? line : `${line.slice(0, REASON_LENGTH_MAX - 1)}…`;
}
