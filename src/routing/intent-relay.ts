import { RelayError } from "../core/errors.ts";
import type { EventHeaders, OutboxEvent } from "../core/event.ts";
import type { OnExhausted } from "../core/hold.ts";
import type { RetryPolicy } from "../core/retry-policy.ts";
import { type IntentMessage, type Translated, translatedOf } from "./intent-message.ts";
import type { Route } from "./routes.ts";

export type { IntentMessage };

/** An intent, as its relay gets it. */
export interface Intent {
  readonly id: string;
  /** The id under the name that external systems use. A receiver that gets it twice can drop the second message. */
  readonly idempotencyKey: string;
  readonly type: string;
  readonly key: string | null;
  readonly payload: Buffer;
  readonly headers: EventHeaders;
  readonly correlationId: string | null;
  readonly createdAt: string | null;
  /** The payload as JSON. Throws when it is not JSON: the intent then becomes a dead letter with that reason. */
  json<Value = unknown>(): Value;
}

/** The target of an intent type: an address, or the name of a destination in the configuration. */
export type IntentTarget =
  | { readonly url: string; readonly topic?: string }
  | { readonly destination: string; readonly topic?: string };

/** One intent type, one translation, one target. Only the target knows the name of a broker, a topic or a URL. */
export interface IntentRelay {
  /** Exactly one type; patterns are refused. */
  readonly type: string;
  readonly target: IntentTarget;
  /** Pure and synchronous. When it throws, the intent becomes a dead letter with that reason. */
  readonly translate: (intent: Intent) => IntentMessage;
  /** Absent: the retry policy of the table. */
  readonly retry?: RetryPolicy;
  readonly onExhausted?: OnExhausted;
}

/** Checks an intent relay; made for the default export of `<intent>-relay.ts`. Throws CONFIG_INVALID. */
export function defineIntentRelay(relay: IntentRelay): IntentRelay {
  const { type, target, translate } = (relay ?? {}) as Partial<IntentRelay>;
  if (typeof type !== "string" || type === "") throw invalid("An intent relay has no `type`: name its intent type");
  if (type.includes("*")) {
    throw invalid(`The type ${quoted(type)} of an intent relay is a pattern: a relay takes exactly one intent type`);
  }
  if (typeof translate !== "function") throw invalid(`The relay of ${quoted(type)} has no function \`translate\``);
  const { url, destination, topic } = (target ?? {}) as { url?: unknown; destination?: unknown; topic?: unknown };
  if (isName(url) === isName(destination)) {
    throw invalid(
      `The relay of ${quoted(type)} needs one target: \`{ url }\`, the address of a destination (is an environment ` +
        "variable empty?), or `{ destination }`, its name in the configuration",
    );
  }
  if (topic !== undefined && !isName(topic)) throw invalid(`The topic of the relay of ${quoted(type)} is not a text`);
  return relay;
}

/** The route from this intent type, through its relay, to the destination of this name. */
export function intentRoute<DestinationName extends string>(
  relay: IntentRelay,
  destination: DestinationName,
): Route<DestinationName> {
  const { onExhausted, retry, target, type } = relay;
  // A route computes topic, key, headers and payload one by one, but the translation must run only once.
  const known = new WeakMap<OutboxEvent, Translated>();
  const translated = (event: OutboxEvent): Translated => {
    const done = known.get(event);
    if (done !== undefined) return done;
    if (event.type !== type) {
      throw new RelayError("RELAY_MISMATCH", `The relay of ${quoted(type)} was given ${quoted(event.type)}`);
    }
    const result = translatedOf(relay.translate(intentOf(event)), event);
    known.set(event, result);
    return result;
  };
  return {
    types: [type],
    destination,
    topic: (event) => translated(event).topic ?? target.topic ?? event.type,
    key: (event) => translated(event).key,
    headers: (event) => translated(event).headers,
    payload: (event) => translated(event).payload,
    ...(retry === undefined ? {} : { retry }),
    ...(onExhausted === undefined ? {} : { onExhausted }),
  };
}

function intentOf({ correlationId, createdAt, headers, id, key, payload, type }: OutboxEvent): Intent {
  const json = <Value>() => JSON.parse(payload.toString("utf8")) as Value;
  return { id, idempotencyKey: id, type, key, payload, headers, correlationId, createdAt, json };
}

const isName = (value: unknown): value is string => typeof value === "string" && value !== "";

const quoted = (text: string) => JSON.stringify(text);

function invalid(what: string): RelayError {
  return new RelayError("CONFIG_INVALID", `${what}.`);
}
