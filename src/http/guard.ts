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
 * `open`: only whoever runs the service can reach it, and nobody asked for more. `login`: whoever has a token or an
 * account may. `off`: others can reach it, and nothing would keep them out.
 */
type AccessMode = "open" | "login" | "off";

/** Why it is off; null where it is not. */
function whyOff(host: string, { oidc, publicOrigin, tokens }: AccessConfig): string | null {
  if (tokens.length > 0 || oidc !== null) return null;
  if (!isLoopback(host)) return `${host} is reached from elsewhere`;
  return publicOrigin === null ? null : "PUBLIC_URL is set, so others reach it through a proxy";
}

function accessMode(host: string, access: AccessConfig): AccessMode {
  if (access.tokens.length > 0 || access.oidc !== null) return "login";
  return whyOff(host, access) === null ? "open" : "off";
}

/** For the log, when the server has started. */
export function accessText(host: string, access: AccessConfig): string {
  switch (accessMode(host, access)) {
    case "login": {
      const ways = [
        ...(access.tokens.length > 0 ? [`a token (${access.tokens.map(({ name }) => name).join(", ")})`] : []),
        ...(access.oidc === null ? [] : [`an account of ${access.oidc.issuer}`]),
      ];
      return `API and console need ${ways.join(" or ")}`;
    }
    case "open":
      return "API and console are open to this user on this machine alone, and off for requests through a proxy";
    default:
      return `API and console are off: ${whyOff(host, access)}, and no ADMIN_TOKEN is set`;
  }
}

export interface Asking {
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  /** Of whoever holds the other end of the connection. */
  readonly address: string;
  /** Why it is not taken for a request of the person who runs the service; null where it is. */
  readonly foreign: string | null;
}

/** An identity, and how it was found out. */
export interface Caller extends Identity {
  readonly kind: "local" | "token" | "oidc";
  /** Of a session. */
  readonly expiresAt: Date | null;
}

interface GuardOptions {
  readonly host: string;
  /** Of the moment. */
  access(): AccessConfig;
  readonly clock: Clock;
  /** A token was wrong. */
  refused(asking: Asking): void;
  /** Sessions that a logout has ended. */
  readonly ended: EndedSessions;
  /** A request was not let in although the API is open here. */
  closed(why: string): void;
}

/** Stands before API and console: who asks, whether he may, and whether he asks too much. */
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

  /** Where it is open to this machine alone, it is off for whoever only seems to be on it. */
  modeFor({ foreign }: Pick<Asking, "foreign">): AccessMode {
    const { mode } = this;
    if (mode !== "open" || foreign === null) return mode;
    this.#options.closed(foreign);
    return "off";
  }

  /** Throws unless the asker has the role. */
  admit(asking: Asking, wanted: Role): Caller {
    const caller = this.identify(asking);
    if (!hasRole(caller, wanted)) {
      const what = `This needs the role ${wanted}, and ${caller.name} is ${caller.role}.`;
      throw new HttpError(403, "ROLE_MISSING", what);
    }
    // Whoever can reach only his own machine can hurt nobody else by asking.
    if (caller.kind !== "local") this.slow(`${caller.kind}:${caller.name}`);
    return caller;
  }

  /** Whether the asker would still be let in: tokens and accounts come and go while an answer is being sent. */
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

  /** To be called when the answer has ended. Throws for whoever has too many that have not. */
  enter({ kind, name }: Caller): () => void {
    const leave = this.#inFlight.enter(`${kind}:${name}`);
    if (leave !== null) return leave;
    throw tooMany("TOO_MANY_REQUESTS", "Too many requests and streams are open at once.", 1);
  }

  /** Throws for whoever asks more often than the settings allow. */
  slow(asker: string): void {
    const waitS = this.#requests.waitS(asker, this.access.requestsPerSecond);
    if (waitS > 0) throw tooMany("TOO_MANY_REQUESTS", "These are too many requests.", waitS);
  }

  /** Another site's page must not act in the name of whoever looks at it; neither on what is open to all. */
  requireOwnPage({ headers, method }: Pick<Asking, "headers" | "method">): void {
    if (method !== "GET" && method !== "HEAD") requireSameSite(headers, this.access.publicOrigin);
  }

  /** Throws for whoever is nobody here. */
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
    if (session === null) throw unauthorized("No token came with the request.");
    if (session.isExpired) {
      throw new HttpError(401, "SESSION_EXPIRED", "The session has expired.", "Log in again.");
    }
    if (this.#options.ended.has(session.id)) {
      throw new HttpError(401, "SESSION_EXPIRED", "The session was ended by a logout.", "Log in again.");
    }
    // The browser sends a cookie by itself, whoever wants it to.
    requireSameSite(headers, access.publicOrigin);
    const { by, exp, maySeePayloads, name, role } = session;
    return { kind: by, name, role, maySeePayloads, via, expiresAt: new Date(exp * 1_000) };
  }

  /** To be awaited before somebody is identified. */
  async prepare(headers: IncomingHttpHeaders): Promise<void> {
    if (this.#sessionOf(headers) !== null) await this.#options.ended.refresh();
  }

  /** For every copy of the cookie too. Null where there is no session. */
  endSession(headers: IncomingHttpHeaders): ReturnType<typeof sessionOf> {
    const session = this.#sessionOf(headers);
    if (session !== null) this.#options.ended.end(session.id);
    return session;
  }

  #sessionOf(headers: IncomingHttpHeaders): ReturnType<typeof sessionOf> {
    return sessionOf(this.access, headers, this.#options.clock.wallMs());
  }

  /** Throws for a wrong one, and after too many wrong ones for every one that is short or was not right from there before. */
  tokenOf(asking: Asking, sent: string): Omit<AccessToken, "digest"> {
    if (this.modeFor(asking) === "off") throw this.apiOff(asking);
    const asker = askerOf(asking.address);
    const waitS = this.#failures.waitS(asker);
    const token = matching(this.access.tokens, sent);
    // Others behind the same proxy could guess a short one that was right before, as long as they like.
    const isExempt =
      token !== null && sent.length >= TOKEN_CHARACTERS_MIN && this.#failures.isProven(asker, token.name);
    if (waitS > 0 && !isExempt) {
      throw tooMany("TOO_MANY_FAILURES", "Too many wrong tokens came from this address.", waitS);
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
    const fix = "Set ADMIN_TOKEN and send it as a bearer token; or ask as the service's own user, on its own machine.";
    return new HttpError(403, "API_OFF", what, fix);
  }
}

/** All are compared, whichever fits: how long it takes tells nothing. */
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
