import type { LookupFunction } from "node:net";
import { type Clock, systemClock } from "../../core/clock.ts";
import { RelayError } from "../../core/errors.ts";
import type { Message } from "../../core/event.ts";
import type { FailureScope } from "../../core/outcome.ts";
import { secretKey } from "../../core/webhook-signature.ts";
import { isHeaderName, isHeaderValue } from "./http-headers.ts";

/** A target whose address depends on the event. */
export interface HttpTarget {
  /** Returns the whole address. If it throws, the event is rejected with the error's message. */
  readonly of: (message: Message) => string;
  /** The configured origin of all addresses; null: events name the host, so each host is checked. */
  readonly origin: string | null;
  /** Which events share an address, and so its failures: those of one topic, or only this event. */
  readonly scope: FailureScope;
}

/** TLS settings. */
export interface HttpTls {
  /** The trusted certificates, in PEM. Default: the system's. */
  readonly ca?: string;
  /** The relay's own certificate and its key, for receivers that ask for one. */
  readonly cert?: string;
  readonly key?: string;
  readonly passphrase?: string;
}

/** Options of `httpPublisher`. */
export interface HttpPublisherOptions {
  readonly name?: string;
  readonly url: string | HttpTarget;
  readonly method?: "POST" | "PUT" | "PATCH";
  /** Headers of every request, such as `authorization`. An event cannot override them. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Each `whsec_` and base64. With several, a request has one signature for each. */
  readonly signingSecrets?: readonly string[];
  /** The maximum number of concurrent requests per host, each on its own connection. */
  readonly concurrency?: number;
  /** The timeout of one request, including its connection and response. */
  readonly requestTimeoutMs?: number;
  /** A publish starts no request after this time; the rest is published again later. */
  readonly sendMs?: number;
  /** The longest pause that a receiver can request by Retry-After. */
  readonly retryAfterMsMax?: number;
  /** If events name the host: the allowed hosts; `*.example.org` allows all subdomains. */
  readonly allowedHosts?: readonly string[];
  /** If events name the host: also allow private and loopback addresses. */
  readonly allowPrivate?: boolean;
  readonly tls?: HttpTls;
  /**
   * Removes sensitive text from a response before it becomes the reason of a failure. Known secrets are always removed.
   */
  readonly hideAnswer?: (text: string) => string;
  /** Resolves host names. Default: the system's resolver. */
  readonly lookup?: LookupFunction;
  readonly clock?: Clock;
}

/** A parsed address. */
export interface HttpPlace {
  readonly origin: string;
  readonly path: string;
}

export function placeOf({ origin, pathname, search }: URL): HttpPlace {
  return { origin, path: `${pathname}${search}` };
}

/** The options with every default filled in and checked. */
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
  if (!METHODS.includes(method)) throw invalid(name, `has the method ${method}: write one of ${METHODS.join(", ")}`);
  requireBoundedHosts(name, options);
  return {
    name,
    target: typeof url === "string" ? fixedPlace(name, url) : url,
    method,
    headers: configuredHeaders(name, options.headers ?? {}),
    signingKeys: signingSecrets.map((secret) => {
      const key = secretKey(secret);
      if (typeof key === "string") throw invalid(name, `has an invalid signing secret: ${key}`);
      return key;
    }),
    concurrency: within(name, "concurrency", options.concurrency ?? 32, 1, 1_000),
    requestTimeoutMs: within(name, "requestTimeoutMs", options.requestTimeoutMs ?? 3_500, 1, 3_600_000),
    sendMs: within(name, "sendMs", options.sendMs ?? 1_000, 1, 3_600_000),
    retryAfterMsMax: within(name, "retryAfterMsMax", options.retryAfterMsMax ?? 900_000, 0, 86_400_000),
    allowedHosts: options.allowedHosts?.map((host) => host.toLowerCase()) ?? null,
    allowPrivate: options.allowPrivate ?? false,
    tls: options.tls ?? {},
    hideAnswer: options.hideAnswer ?? ((text) => text),
    lookup: options.lookup ?? null,
    clock: options.clock ?? systemClock,
  };
}

/** Headers that are never secret. */
const HARMLESS = /^(?:content-type|user-agent|accept(?:-.+)?)$/i;

/**
 * Otherwise anyone who can write an event could have the credentials sent to their own host. A signature reveals no
 * secret.
 */
function requireBoundedHosts(name: string, { allowedHosts, headers = {}, tls, url }: HttpPublisherOptions): void {
  if (typeof url === "string" || url.origin !== null || allowedHosts !== undefined) return;
  const header = Object.keys(headers).find((it) => !HARMLESS.test(it));
  if (header === undefined && tls?.cert === undefined) return;
  const what = header === undefined ? "the client certificate" : `the header ${header.toLowerCase()}`;
  throw invalid(
    name,
    `sends ${what} with every request, but events name the host: list the hosts that may receive it (HTTP_ALLOWED_HOSTS)`,
  );
}

function fixedPlace(name: string, written: string): HttpPlace {
  const url = URL.parse(written);
  // The error does not show the address, which may contain a password.
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
  throw invalid(name, `has ${what} = ${value}: write a whole number from ${min} to ${max}`);
}

function invalid(name: string, what: string): RelayError {
  return new RelayError("CONFIG_INVALID", `The destination "${name}" ${what}.`);
}
