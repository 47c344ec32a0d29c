import type { LookupFunction } from "node:net";
import { type Clock, systemClock } from "../../core/clock.ts";
import { RelayError } from "../../core/errors.ts";
import type { Message } from "../../core/event.ts";
import type { Scope } from "../../core/outcome.ts";
import { isHeaderName, isHeaderValue } from "./http-headers.ts";
import { secretKey } from "./http-signature.ts";

/** An address that depends on the event. */
export interface HttpTarget {
  /** The whole address. What it throws says what the event lacks: such an event is rejected. */
  readonly of: (message: Message) => string;
  /** What all of its addresses begin with, written by a person; null: events name the host, so each one is checked. */
  readonly origin: string | null;
  /** How far a failure of an address reaches: to the events of one topic, or to this event alone. */
  readonly scope: Scope;
}

export interface HttpTls {
  /** The certificates to trust, in PEM; those of the system by default. */
  readonly ca?: string;
  /** The relay's own certificate and its key, for receivers that ask for one. */
  readonly cert?: string;
  readonly key?: string;
  readonly passphrase?: string;
}

export interface HttpPublisherOptions {
  readonly name?: string;
  readonly url: string | HttpTarget;
  readonly method?: "POST" | "PUT" | "PATCH";
  /** Sent with every request, such as `authorization`. An event cannot change them. */
  readonly headers?: Readonly<Record<string, string>>;
  /** `whsec_` and base64 each; with several a request bears one signature of each. */
  readonly signingSecrets?: readonly string[];
  /** Requests to one host at a time, each on a connection of its own. */
  readonly concurrency?: number;
  /** For one request, with its connection and its answer. */
  readonly requestTimeoutMs?: number;
  /** A publish begins no further request after this time; what is left comes again in another. */
  readonly sendMs?: number;
  /** The longest pause that a receiver can ask for. */
  readonly retryAfterMsMax?: number;
  /** Where events name the host: which ones they may name, `*.example.org` for all below. */
  readonly allowedHosts?: readonly string[];
  /** Where events name the host: also private and loopback addresses. */
  readonly allowPrivate?: boolean;
  readonly tls?: HttpTls;
  /** Finds the addresses of a host; the system's by default. */
  readonly lookup?: LookupFunction;
  readonly clock?: Clock;
}

/** An address taken apart, once for all requests to it. */
export interface HttpPlace {
  readonly origin: string;
  readonly path: string;
}

export function placeOf({ origin, pathname, search }: URL): HttpPlace {
  return { origin, path: `${pathname}${search}` };
}

/** The same with everything decided and checked. */
export interface HttpSettings
  extends Required<
    Omit<HttpPublisherOptions, "headers" | "signingSecrets" | "tls" | "lookup" | "url" | "allowedHosts">
  > {
  readonly target: HttpPlace | HttpTarget;
  /** In lower case. */
  readonly headers: ReadonlyMap<string, string>;
  readonly signingKeys: readonly Buffer[];
  readonly allowedHosts: readonly string[] | null;
  readonly tls: HttpTls;
  readonly lookup: LookupFunction | null;
}

const METHODS = ["POST", "PUT", "PATCH"];

export function httpSettings(options: HttpPublisherOptions): HttpSettings {
  const { method = "POST", name = "http", signingSecrets = [], url } = options;
  if (!METHODS.includes(method)) throw invalid(name, `cannot send by ${method}: write ${METHODS.join(", ")}`);
  requireBoundedHosts(name, options);
  return {
    name,
    target: typeof url === "string" ? fixedPlace(name, url) : url,
    method,
    headers: configuredHeaders(name, options.headers ?? {}),
    signingKeys: signingSecrets.map((secret) => {
      const key = secretKey(secret);
      if (typeof key === "string") throw invalid(name, `has a signing secret that is none: ${key}`);
      return key;
    }),
    concurrency: within(name, "concurrency", options.concurrency ?? 32, 1, 1_000),
    requestTimeoutMs: within(name, "requestTimeoutMs", options.requestTimeoutMs ?? 3_500, 1, 3_600_000),
    sendMs: within(name, "sendMs", options.sendMs ?? 1_000, 1, 3_600_000),
    retryAfterMsMax: within(name, "retryAfterMsMax", options.retryAfterMsMax ?? 900_000, 0, 86_400_000),
    allowedHosts: options.allowedHosts?.map((host) => host.toLowerCase()) ?? null,
    allowPrivate: options.allowPrivate ?? false,
    tls: options.tls ?? {},
    lookup: options.lookup ?? null,
    clock: options.clock ?? systemClock,
  };
}

/** Headers that give nothing away, whoever reads them. */
const HARMLESS = /^(?:content-type|user-agent|accept(?:-.+)?)$/i;

/** Whoever can write an event could have every credential sent to a host of his own. A signature gives no secret away. */
function requireBoundedHosts(name: string, { allowedHosts, headers = {}, tls, url }: HttpPublisherOptions): void {
  if (typeof url === "string" || url.origin !== null || allowedHosts !== undefined) return;
  const header = Object.keys(headers).find((it) => !HARMLESS.test(it));
  if (header === undefined && tls?.cert === undefined) return;
  const what = header === undefined ? "the client certificate" : `the header ${header.toLowerCase()}`;
  throw invalid(
    name,
    `sends ${what} with every request, and events name the host it goes to: list the hosts that may receive it (HTTP_ALLOWED_HOSTS)`,
  );
}

function fixedPlace(name: string, written: string): HttpPlace {
  const url = URL.parse(written);
  // The address is not shown: it may hold a password.
  if (url === null || !/^https?:$/.test(url.protocol))
    throw invalid(name, "has no address of the form https://host/path");
  return placeOf(url);
}

function configuredHeaders(name: string, headers: Readonly<Record<string, string>>): ReadonlyMap<string, string> {
  for (const [header, value] of Object.entries(headers)) {
    if (!isHeaderName(header)) throw invalid(name, `has the header ${JSON.stringify(header)}, which HTTP cannot carry`);
    if (!isHeaderValue(value)) throw invalid(name, `has a value of the header ${header} that HTTP cannot carry`);
  }
  return new Map(Object.entries(headers).map(([header, value]) => [header.toLowerCase(), value]));
}

function within(name: string, what: string, value: number, min: number, max: number): number {
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  throw invalid(name, `has ${what} ${value}: write a whole number from ${min} to ${max}`);
}

function invalid(name: string, what: string): RelayError {
  return new RelayError("CONFIG_INVALID", `The destination "${name}" ${what}.`);
}
