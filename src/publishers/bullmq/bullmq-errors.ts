import { type Failed, retry } from "../../core/outcome.ts";
import type { BullmqSettings } from "./bullmq-config.ts";

/** By the word that an error of Redis begins with; what is not here concerns the queue alone. */
const ADVICE: Readonly<Record<string, string>> = {
  OOM: "Redis has used up its maxmemory: raise it, or remove finished jobs (removeOnComplete)",
  READONLY: "this is a replica: write the address of the primary",
  LOADING: "Redis is still loading its data",
  MASTERDOWN: "this is a replica that lost its primary",
  MISCONF: "Redis cannot save its data: look at its log",
  NOREPLICAS: "too few replicas are connected (min-replicas-to-write)",
  BUSY: "a script keeps Redis busy",
  NOAUTH: "Redis wants a password: set it",
  WRONGPASS: "check user and password",
  NOPERM: "the user may not do this: BullMQ needs all commands on the keys with its prefix",
  DENIED: "Redis is in protected mode and takes local clients only",
  MOVED: "this is a node of a cluster, which is not supported here",
  CLUSTERDOWN: "this is a node of a cluster, which is not supported here",
};

const REASON_LENGTH_MAX = 500;

/** What Redis itself answered, or null when it did not: then nobody knows what took effect. */
export function answerIn(error: unknown): string | null {
  return error instanceof Error && error.name === "ReplyError" ? error.message : null;
}

/** What an error that Redis answered means for an event that was to go to this queue. */
export function outcomeOf(said: string, queue: string): Failed {
  const word = /^-?([A-Z]+)/.exec(said)?.[1] ?? "ERR";
  const advice = ADVICE[word];
  const scope = advice === undefined ? "topic" : "destination";
  return retry(oneLine(`queue "${queue}": ${said}${advice === undefined ? "" : `; ${advice}`}`), {
    scope,
    errorType: word,
  });
}

/** Why there is no connection, in one line without a secret. */
export function connectionReason({ host, password, port }: BullmqSettings, error: unknown): string {
  const said = error instanceof Error ? error.message : String(error);
  const advice = ADVICE[/^[A-Z]+/.exec(said)?.[0] ?? ""];
  const text = oneLine(`Redis at ${host}:${port}: ${said}${advice === undefined ? "" : `; ${advice}`}`);
  return password ? text.replaceAll(password, "***") : text;
}

function oneLine(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length <= REASON_LENGTH_MAX ? line : `${line.slice(0, REASON_LENGTH_MAX - 1)}…`;
}
