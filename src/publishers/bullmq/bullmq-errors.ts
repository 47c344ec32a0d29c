import { type Failed, retry } from "../../core/outcome.ts";
import { redisConnectionReason, SERVER_ADVICE, wordOf } from "../../core/redis-errors.ts";
import { serverText } from "../../core/server-text.ts";
import type { BullmqSettings } from "./bullmq-config.ts";

/** Advice by the first word of a Redis error. Errors that are not listed concern only the queue. */
const ADVICE: Readonly<Record<string, string>> = {
  ...SERVER_ADVICE,
  OOM: "Redis has used up its maxmemory: raise it, or remove finished jobs (removeOnComplete)",
  NOPERM: "the user lacks a permission: BullMQ needs all commands on the keys with its prefix",
};

/** The outcome that an error of Redis means for an event of this queue. */
export function outcomeOf(said: string, queue: string): Failed {
  const word = wordOf(said);
  const advice = ADVICE[word];
  const scope = advice === undefined ? "topic" : "destination";
  return retry(serverText(`queue "${queue}": ${said}${advice === undefined ? "" : `; ${advice}`}`), {
    scope,
    errorType: word,
  });
}

/** Why there is no connection, in one line without a secret. */
export function connectionReason({ host, password, port, tls }: BullmqSettings, error: unknown): string {
  return redisConnectionReason({ hosts: `${host}:${port}`, password, hasTls: tls !== null, advice: ADVICE }, error);
}
