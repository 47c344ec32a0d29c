import type { ChainableCommander, Cluster, Redis } from "ioredis";
import { RelayError } from "../../core/errors.ts";
import type { EventHeaders } from "../../core/event.ts";
import type { Pause } from "../../ports/queue-store.ts";
import type { FailedAttempt } from "../../ports/technical-events.ts";
import { headOf } from "./event-head.ts";
import { APPEND } from "./lua/append.ts";
import { appendScript, deadLettersScript, pauseScript, removeScript, replayScript } from "./lua/operations.ts";
import { baseKey, checkPlace, type RedisPlace } from "./redis-config.ts";
import { type Argument, isUnknownScript, loadRedis, translateError } from "./redis-link.ts";
import { listOf, numberOf, type Reply, textOf, textsOf } from "./redis-replies.ts";
import type { Script } from "./redis-script.ts";
import { attemptsOf, optional } from "./redis-settle.ts";

/** An event to append. */
export interface NewRedisEvent {
  /** Unique: appending the same id again changes nothing. */
  readonly id: string;
  readonly type: string;
  /** Events of one key are delivered in the order in which they were written. */
  readonly key?: string | null;
  readonly payload: Buffer | string;
  readonly headers?: EventHeaders;
  readonly correlationId?: string | null;
}

/** A dead event with the error of every attempt. */
export interface RedisDeadLetter {
  readonly id: string;
  readonly pipeline: string;
  readonly type: string;
  readonly key: string | null;
  readonly payload: Buffer;
  readonly attempts: number;
  /** Whether the later events of its key wait for it. */
  readonly parks: boolean;
  /** One per attempt, the oldest first. */
  readonly errors: readonly FailedAttempt[];
}

/** The outbox as applications and operators use it. */
export interface RedisOutbox {
  /** Appends the events atomically; returns the ids that were new. */
  append(events: NewRedisEvent | readonly NewRedisEvent[]): Promise<readonly string[]>;
  /** Adds the append to your own MULTI: your writes and the events take effect together or not at all. */
  appendTo<Multi extends Pick<ChainableCommander, "eval">>(
    multi: Multi,
    events: NewRedisEvent | readonly NewRedisEvent[],
  ): Multi;
  /** For a script of your own; see the README. */
  readonly lua: {
    /** Defines `outbox_append(base, args, first, last)`. Put it before your script. */
    readonly text: string;
    /** The key that your script passes as `base`. */
    readonly base: string;
    /** Six arguments per event. */
    args(events: NewRedisEvent | readonly NewRedisEvent[]): readonly (string | Buffer)[];
  };
  deadLetters(limit?: number): Promise<readonly RedisDeadLetter[]>;
  /**
   * Puts a dead event back at its original position; the relay retries it at its next review. False: it is not dead.
   */
  replay(id: string): Promise<boolean>;
  /** Removes an event in any state. False: it does not exist. */
  remove(id: string): Promise<boolean>;
  /** Pauses a pipeline (`SOURCE->DESTINATION`); null resumes it. False: no such pipeline. */
  pause(pipeline: string, pause: Pause | null): Promise<boolean>;
  /** Closes the connection unless the client was passed in. */
  close(): Promise<void>;
}

/** Events in one append: the server runs nothing else meanwhile. */
const APPEND_MAX = 10_000;
const DEAD_LETTERS_MAX = 1_000;

/** Opens the outbox for appending and for operators. It connects at the first call. */
export function redisOutbox(place: RedisPlace): RedisOutbox {
  checkPlace(place);
  const base = baseKey(place);
  const { client, close, run } = scriptRunner(place, base);

  async function pipelines(): Promise<readonly string[]> {
    return await (await client()).smembers(`${base}:pipelines`);
  }

  async function lettersOf(pipeline: string, limit: number): Promise<readonly RedisDeadLetter[]> {
    const reply = await run("reading dead letters", deadLettersScript, [pipeline, limit]);
    return listOf(reply).map((letter) => letterOf(pipeline, letter));
  }

  return {
    append: async (events) => textsOf(await run("appending", appendScript, argumentsOf(events))),
    // The whole text, not its digest: if the server did not know the digest, this one command would fail, and MULTI
    // rolls nothing back.
    appendTo: (multi, events) => {
      multi.eval(appendScript.text, 1, base, ...argumentsOf(events));
      return multi;
    },
    lua: { text: APPEND, base, args: argumentsOf },
    deadLetters: async (limit = DEAD_LETTERS_MAX) => {
      const letters: RedisDeadLetter[] = [];
      for (const pipeline of await pipelines()) letters.push(...(await lettersOf(pipeline, limit - letters.length)));
      return letters;
    },
    replay: async (id) => {
      for (const pipeline of await pipelines()) {
        if ((await run("replaying", replayScript, [pipeline, id])) === 1) return true;
      }
      return false;
    },
    remove: async (id) => (await run("removing", removeScript, ["", id, "0", ...(await pipelines())])) === 1,
    pause: async (pipeline, pause) => {
      const args = pause === null ? [] : [pause.by, optional(pause.reason), pause.handsOver ? "1" : "0"];
      return (await run("pausing", pauseScript, [pipeline, ...args])) === 1;
    },
    close,
  };
}

/** Runs the outbox's scripts on a connection that is opened at the first call. */
function scriptRunner(place: RedisPlace, base: string) {
  let opening: Promise<Redis | Cluster> | undefined;

  async function open(): Promise<Redis | Cluster> {
    return place.client ?? new (await loadRedis()).Redis(place.url ?? "").on("error", () => {});
  }

  function client(): Promise<Redis | Cluster> {
    opening ??= open();
    return opening;
  }

  async function run(doing: string, { sha, text }: Script, args: readonly Argument[]): Promise<Reply> {
    const redis = await client();
    try {
      const known = redis.callBuffer("EVALSHA", sha, 1, base, ...args);
      return (await known.catch((error: unknown) => {
        if (!isUnknownScript(error)) throw error;
        return redis.callBuffer("EVAL", text, 1, base, ...args);
      })) as Reply;
    } catch (error) {
      throw translateError(error, doing);
    }
  }

  async function close(): Promise<void> {
    if (place.client === undefined) (await opening)?.disconnect();
  }

  return { client, run, close };
}

function argumentsOf(events: NewRedisEvent | readonly NewRedisEvent[]): readonly (string | Buffer)[] {
  const list: readonly NewRedisEvent[] = Array.isArray(events) ? events : [events as NewRedisEvent];
  if (list.length > APPEND_MAX) throw invalid(`${list.length} events in one append; the limit is ${APPEND_MAX}`);
  return list.flatMap((event) => {
    const { correlationId = null, headers = {}, id, key = null, payload, type } = event;
    if (typeof id !== "string" || id === "") throw invalid("an event has no id");
    if (typeof type !== "string" || type === "") throw invalid(`event ${id} has no type`);
    if (typeof payload !== "string" && !Buffer.isBuffer(payload)) {
      throw invalid(`the payload of event ${id} is neither text nor a Buffer`);
    }
    const wrong = Object.keys(headers).find((name) => typeof headers[name] !== "string");
    if (wrong !== undefined) throw invalid(`header ${wrong} of event ${id} is not a string`);
    const json = Object.keys(headers).length === 0 ? "" : JSON.stringify(headers);
    return [id, type, optional(key), payload, json, optional(correlationId)];
  });
}

function letterOf(pipeline: string, reply: Reply): RedisDeadLetter {
  const [row, payload, attempts, parks, errors] = listOf(reply);
  const { id, key, type } = headOf(row ?? null);
  return {
    id,
    pipeline,
    type,
    key,
    payload: Buffer.isBuffer(payload) ? payload : Buffer.alloc(0),
    attempts: numberOf(attempts),
    parks: numberOf(parks) === 1,
    errors: attemptsOf(textOf(errors)),
  };
}

function invalid(what: string): RelayError {
  return new RelayError("CONFIG_INVALID", `The event cannot be written: ${what}.`);
}
