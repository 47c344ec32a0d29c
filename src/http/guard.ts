import { timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { type AccessConfig, type AccessToken, TOKEN_CHARACTERS_MIN, tokenDigest } from "../config/access-config.ts";
import type { Clock } from "../core/clock.ts";
import type { EndedSessions } from "./auth/ended-sessions.ts";
import { askerOf, FailureLimit, InFlightLimit, RequestLimit } from "./auth/limits.ts";
import { isLoopback, requireKnownHost, requireSameSite } from "./auth/origin.ts";
import { sessionOf } from "./auth/session.ts";
import { HttpError } from "./http-error.ts";
import { hasRole, type Identity, type Role, viaOf } from "./identity.ts";

/**
 * `open`: only the user who runs the service can reach it, and no token is configured. `login`: a token or an account
 * is required. `off`: others can reach it, and no token protects it.
 */
type AccessMode = "open" | "login" | "off";

/** Why the API is off; null where it is not. */
function whyOff(host: string, { oidc, publicOrigin, tokens }: AccessConfig): string | null {
  if (tokens.length > 0 || oidc !== null) return null;
  if (!isLoopback(host)) return `${host} can be reached from other machines`;
  return publicOrigin === null ? null : "PUBLIC_URL is set, so others can reach it through a proxy";
}

function accessMode(host: string, access: AccessConfig): AccessMode {
  if (access.tokens.length > 0 || access.oidc !== null) return "login";
  return whyOff(host, access) === null ? "open" : "off";
}

/** Describes the access mode for the log line at the start. */
export function accessText(host: string, access: AccessConfig): string {
  switch (accessMode(host, access)) {
    case "login": {
      const options = [
        ...(access.tokens.length > 0 ? [`a token (${access.tokens.map(({ name }) => name).join(", ")})`] : []),
        ...(access.oidc === null ? [] : [`an account of ${access.oidc.issuer}`]),
      ];
      return `API and console need ${options.join(" or ")}`;
    }
    case "open":
      return "API and console are open only to this user on this machine, and off for requests through a proxy";
    default:
      return `API and console are off: ${whyOff(host, access)}, and no ADMIN_TOKEN is set`;
  }
}

/** What the guard checks of a request. */
export interface Asking {
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  /** Address of the other end of the connection. */
  readonly address: string;
  /** Why the request is not trusted as one of the user who runs the service; null when it is trusted. */
  readonly foreign: string | null;
}

/** An identity and how it was authenticated. */
export interface Caller extends Identity {
  readonly kind: "local" | "token" | "oidc";
  /** When the session expires. */
  readonly expiresAt: Date | null;
}

interface GuardOptions {
  readonly host: string;
  /** The current rules; a reload may change them. */
  access(): AccessConfig;
  readonly clock: Clock;
  /** Called for a wrong token. */
  refused(asking: Asking): void;
  /** Sessions that a logout has ended. */
  readonly ended: EndedSessions;
  /** Called when a request is refused although the API is open on this machine. */
  closed(why: string): void;
}

/** Protects API and console: authentication, roles and rate limits. */
export class Guard {
  readonly #options: GuardOptions;
  readonly #requests: RequestLimit;
  readonly #failures: FailureLimit;
  readonly #inFlight = new InFlightLimit();

  constructor(options: GuardOptions) {
    this.#options = options;
    this.#requests = new RequestLimit(options.clock);
    this.#failures = new FailureLimit(options.clock);
  }

  get access(): AccessConfig {
    return this.#options.access();
  }

  get mode(): AccessMode {
    return accessMode(this.#options.host, this.access);
  }

  /** In open mode the API is off for requests that only appear to come from this machine. */
  modeFor({ foreign }: Pick<Asking, "foreign">): AccessMode {
    const { mode } = this;
    if (mode !== "open" || foreign === null) return mode;
    this.#options.closed(foreign);
    return "off";
  }

  /** Throws unless the caller has the role. */
  admit(asking: Asking, wanted: Role): Caller {
    const caller = this.identify(asking);
    if (!hasRole(caller, wanted)) {
      const what = `This needs the role ${wanted}; ${caller.name} has the role ${caller.role}.`;
      throw new HttpError(403, "ROLE_MISSING", what);
    }
    // No rate limit in open mode: there the caller could only slow down a service of its own.
    if (caller.kind !== "local") this.slow(`${caller.kind}:${caller.name}`);
    return caller;
  }

  /** Whether the caller would still be admitted: tokens and accounts may be removed while a response is being sent. */
  isWelcome(asking: Asking): boolean {
    void this.prepare(asking.headers);
    try {
      this.identify(asking);
      return true;
    } catch (error) {
      if (error instanceof HttpError) return false;
      throw error;
    }
  }

  /** Returns the function to call at the end of the response. Throws when the caller has too many open ones. */
  enter({ kind, name }: Caller): () => void {
    const leave = this.#inFlight.enter(`${kind}:${name}`);
    if (leave !== null) return leave;
    throw tooMany("TOO_MANY_REQUESTS", "This identity has too many open requests and streams.", 1);
  }

  /** Throws when the caller exceeds the rate limit. */
  slow(asker: string): void {
    const waitS = this.#requests.waitS(asker, this.access.requestsPerSecond);
    if (waitS > 0) throw tooMany("TOO_MANY_REQUESTS", "Rate limit exceeded.", waitS);
  }

  /** A page of another site must not act with the rights of the user who opens it, not even on open routes. */
  requireOwnPage({ headers, method }: Pick<Asking, "headers" | "method">): void {
    if (method !== "GET" && method !== "HEAD") requireSameSite(headers, this.access.publicOrigin);
  }

  /** Throws for a request without a valid identity. */
  identify(asking: Asking): Caller {
    const { headers } = asking;
    const via = viaOf(headers);
    const { access } = this;
    const mode = this.modeFor(asking);
    if (mode === "off") throw this.apiOff(asking);
    if (mode === "open") {
      requireKnownHost(this.#options.host, headers.host);
      return { kind: "local", name: "local", role: "admin", maySeePayloads: true, via, expiresAt: null };
    }
    if (headers.authorization !== undefined) {
      const sent = /^Bearer +(.+)$/i.exec(headers.authorization)?.[1] ?? "";
      return { ...this.tokenOf(asking, sent), kind: "token", via, expiresAt: null };
    }
    const session = this.#sessionOf(headers);
    if (session === null) throw unauthorized("The request has no token.");
    if (session.isExpired) {
      throw new HttpError(401, "SESSION_EXPIRED", "The session has expired.", "Log in again.");
    }
    if (this.#options.ended.has(session.id)) {
      throw new HttpError(401, "SESSION_EXPIRED", "A logout has ended the session.", "Log in again.");
    }
    // Browsers send cookies with requests of other sites' pages too.
    requireSameSite(headers, access.publicOrigin);
    const { by, exp, maySeePayloads, name, role } = session;
    return { kind: by, name, role, maySeePayloads, via, expiresAt: new Date(exp * 1_000) };
  }

  /** Must be awaited before `identify`. */
  async prepare(headers: IncomingHttpHeaders): Promise<void> {
    if (this.#sessionOf(headers) !== null) await this.#options.ended.refresh();
  }

  /** Ends the session for every copy of its cookie. Null where there is none. */
  endSession(headers: IncomingHttpHeaders): ReturnType<typeof sessionOf> {
    const session = this.#sessionOf(headers);
    if (session !== null) this.#options.ended.end(session.id);
    return session;
  }

  #sessionOf(headers: IncomingHttpHeaders): ReturnType<typeof sessionOf> {
    return sessionOf(this.access, headers, this.#options.clock.wallMs());
  }

  /**
   * Throws for a wrong token. After too many wrong ones it throws for every token that is short, or was not right from
   * this address before.
   */
  tokenOf(asking: Asking, sent: string): Omit<AccessToken, "digest"> {
    if (this.modeFor(asking) === "off") throw this.apiOff(asking);
    const asker = askerOf(asking.address);
    const waitS = this.#failures.waitS(asker);
    const token = matching(this.access.tokens, sent);
    // Otherwise others behind the same proxy could guess a short token that was right before without limit.
    const isExempt =
      token !== null && sent.length >= TOKEN_CHARACTERS_MIN && this.#failures.isProven(asker, token.name);
    if (waitS > 0 && !isExempt) {
      throw tooMany("TOO_MANY_FAILURES", "This address sent too many wrong tokens.", waitS);
    }
    if (token === null) {
      this.#failures.failed(asker);
      this.#options.refused(asking);
      throw unauthorized("The token is wrong.");
    }
    this.#failures.succeeded(asker, token.name);
    const { maySeePayloads, name, role } = token;
    return { name, role, maySeePayloads };
  }

  apiOff({ foreign }: Pick<Asking, "foreign">): HttpError {
    const why = whyOff(this.#options.host, this.access);
    const what = `API and console are off${why === null ? ` for this request: ${foreign}` : `: ${why}`}, and no token is set.`;
    const fix =
      "Set ADMIN_TOKEN and send it as a bearer token, or send the request as the service's own user on its own machine.";
    return new HttpError(403, "API_OFF", what, fix);
  }
}

/** Compares with every token, so that the response time reveals nothing. */
function matching(tokens: readonly AccessToken[], sent: string): AccessToken | null {
  const digest = tokenDigest(sent);
  let found: AccessToken | null = null;
  for (const token of tokens) {
    if (timingSafeEqual(token.digest, digest)) found = token;
  }
  return found;
}

function unauthorized(what: string): HttpError {
  const fix = "Send a token as Authorization: Bearer <token>, or log in to the console.";
  return new HttpError(401, "UNAUTHORIZED", what, fix);
}

function tooMany(code: string, what: string, waitS: number): HttpError {
  const headers = { "retry-after": String(waitS) };
  return new HttpError(429, code, what, { fix: `Wait ${waitS} s.`, headers });
}
