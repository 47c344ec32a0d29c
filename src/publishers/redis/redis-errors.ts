import { type Failed, type FailureScope, rejected, retry } from "../../core/outcome.ts";
import { redisConnectionReason, SERVER_ADVICE, wordOf } from "../../core/redis-errors.ts";
import { serverText } from "../../core/server-text.ts";
import { describeHosts, type RedisSettings } from "./redis-config.ts";

const PERMISSION =
  "the user lacks a permission: grant XADD, SET, DEL, PEXPIRE, EVAL and EVALSHA on the stream and on the prefix";

/** Errors that concern one stream, like all errors that are in neither list. */
const STREAM_ADVICE: Readonly<Record<string, string>> = {
  WRONGTYPE: "the key exists but is not a stream: rename one of them",
  NOPERM: PERMISSION,
  CROSSSLOT: "the stream and its markers are in different slots",
};

const DESTINATION_ADVICE: Readonly<Record<string, string>> = {
  ...SERVER_ADVICE,
  OOM: "Redis has used up its maxmemory: raise it, or set maxlen",
};

const ADVICE = { ...STREAM_ADVICE, ...DESTINATION_ADVICE };

interface Meaning {
  readonly scope: FailureScope;
  /** What the operator can do. */
  readonly advice: string;
}

/** The outcome that an error of Redis means for an event of this stream. */
export function outcomeOf(said: string, stream: string): Failed {
  const text = said.replace(/^-/, "");
  const word = wordOf(text);
  if (/Protocol error: invalid (?:bulk|multibulk) length/.test(text)) {
    return rejected(`stream "${stream}": too large for Redis (proto-max-bulk-len)`, { errorType: "TOO_LARGE" });
  }
  const { scope, advice } = meaningOf(word, text);
  return retry(serverText(`stream "${stream}": ${text}${advice === "" ? "" : `; ${advice}`}`), {
    scope,
    errorType: word,
  });
}

function meaningOf(word: string, text: string): Meaning {
  if (/(?:can't|to) run (?:this|the) .*command/.test(text)) return { scope: "destination", advice: PERMISSION };
  if (/user executing the script can't access/.test(text)) return { scope: "topic", advice: PERMISSION };
  if (/unknown command|max number of clients/i.test(text)) return { scope: "destination", advice: "" };
  return { scope: word in DESTINATION_ADVICE ? "destination" : "topic", advice: ADVICE[word] ?? "" };
}

/** Why there is no connection, in one line that names the setting to check and shows no secret. */
export function connectionReason(settings: RedisSettings, error: unknown): string {
  const { password, tls } = settings;
  return redisConnectionReason(
    { hosts: describeHosts(settings), password, hasTls: tls !== null, advice: ADVICE },
    error,
  );
}
