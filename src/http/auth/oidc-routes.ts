import type { IncomingHttpHeaders } from "node:http";
import { z } from "zod";
import { type AccessConfig, type OidcConfig, RESERVED_NAMES } from "../../config/access-config.ts";
import { errorSchema, HttpError } from "../http-error.ts";
import { type Answer, type Route, route } from "../route.ts";
import type { SessionParts } from "../routes/session-routes.ts";
import { cookieOf, cookieText, isSecure, opened, signed, signingKey } from "./cookies.ts";
import { type Claims, groupsIn, OidcLogin } from "./oidc.ts";
import { sessionCookie } from "./session.ts";

const COOKIE = "outbox_relay_login";
const PURPOSE = "login";
const LIFE_S = 600;
const CALLBACK = "/api/v1/login/oidc/callback";

const pendingSchema = z.object({
  state: z.string(),
  nonce: z.string(),
  verifier: z.string(),
  redirectUrl: z.string(),
  exp: z.int(),
});

const answers: Route["answers"] = {
  302: { description: "To the issuer, or back to the console", schema: null },
  400: { description: "Invalid request", schema: errorSchema },
  401: { description: "The login did not start in this browser, or it expired", schema: errorSchema },
  403: { description: "The account has no role", schema: errorSchema },
  404: { description: "No issuer is configured", schema: errorSchema },
  502: { description: "The issuer did not respond", schema: errorSchema },
};

/** The routes of a login with an account of the OpenID Connect issuer. */
export function oidcRoutes(parts: SessionParts): Route[] {
  const login = new OidcLogin();
  return [
    route({
      method: "GET",
      path: "/api/v1/login/oidc",
      id: "loginByOidc",
      summary: "Start a login with an account of the OpenID Connect issuer",
      access: "open",
      answers,
      handle: async ({ headers }) => await begun(parts, login, headers),
    }),
    route({
      method: "GET",
      path: CALLBACK,
      id: "loginByOidcCallback",
      summary: "The address to which the issuer redirects after a login",
      access: "open",
      query: z.looseObject({
        code: z.string().max(4_000).optional(),
        state: z.string().max(1_000).optional(),
        error: z.string().max(1_000).optional(),
      }),
      answers,
      handle: async ({ address, headers, query }) => {
        try {
          return await finished(parts, login, { address, headers, query });
        } catch (error) {
          if (error instanceof HttpError && error.status < 500) {
            parts.notes.refused("console", { by: "oidc", address, code: error.code });
          }
          throw error;
        }
      },
    }),
  ];
}

async function begun({ clock, guard }: SessionParts, login: OidcLogin, headers: IncomingHttpHeaders): Promise<Answer> {
  const { access } = guard;
  const oidc = requireOidc(access);
  const { pending, url } = await login.begin(oidc, redirectUrlOf(access, oidc, headers));
  const exp = Math.floor(clock.wallMs() / 1_000) + LIFE_S;
  const value = signed(signingKey(access), PURPOSE, { ...pending, exp });
  return redirect(url.href, [stateCookie(access, headers, value, LIFE_S)]);
}

interface CameBack {
  readonly address: string;
  readonly headers: IncomingHttpHeaders;
  readonly query: Readonly<Record<string, unknown>>;
}

async function finished(parts: SessionParts, login: OidcLogin, { address, headers, query }: CameBack): Promise<Answer> {
  const { clock, guard, notes } = parts;
  const { access } = guard;
  const oidc = requireOidc(access);
  const cookie = cookieOf(headers, COOKIE) ?? "";
  const { data: pending } = pendingSchema.safeParse(opened(signingKey(access), PURPOSE, cookie));
  if (pending === undefined || pending.exp * 1_000 <= clock.wallMs()) {
    throw new HttpError(
      401,
      "LOGIN_REFUSED",
      "No login was started in this browser in the last ten minutes.",
      "Log in again.",
    );
  }
  const texts = Object.entries(query).filter((pair): pair is [string, string] => typeof pair[1] === "string");
  const claims = await login.finish(oidc, pending, new URLSearchParams(texts));
  const name = nameOf(access, claims);
  const groups = groupsWithRights(oidc, name, claims);
  notes.loggedIn({ by: name, via: "console" }, { by: "oidc", subject: String(claims.sub), address });
  const owner = { by: "oidc", name, groups } as const;
  // Relative to the callback's own address, so that it also works behind a proxy that adds a path prefix.
  return redirect("../../../../", [
    sessionCookie(access, owner, headers, clock.wallMs()),
    stateCookie(access, headers, "", 0),
  ]);
}

function requireOidc({ oidc }: AccessConfig): OidcConfig {
  if (oidc !== null) return oidc;
  throw new HttpError(
    404,
    "OIDC_OFF",
    "No OpenID Connect issuer is configured.",
    "Set OIDC_ISSUER, or log in with a token.",
  );
}

/** The issuer accepts only registered addresses: a forged Host header gives one that it refuses. */
function redirectUrlOf(access: AccessConfig, oidc: OidcConfig, headers: IncomingHttpHeaders): string {
  if (oidc.redirectUrl !== null) return oidc.redirectUrl;
  if (access.publicOrigin !== null) return `${access.publicOrigin}${CALLBACK}`;
  const address = `${isSecure(headers, null) ? "https" : "http"}://${headers.host}${CALLBACK}`;
  if (URL.canParse(address)) return address;
  throw new HttpError(
    400,
    "BAD_REQUEST",
    "The Host header is not a valid host name.",
    "Set OIDC_REDIRECT_URL or PUBLIC_URL.",
  );
}

/** Never a name that the audit could mistake for another user's. */
function nameOf({ tokens }: AccessConfig, { email, email_verified, preferred_username, sub }: Claims): string {
  // Some issuers let users choose preferred_username freely.
  const names = [email_verified === false ? null : email, preferred_username, sub];
  const name = String(names.find((it) => typeof it === "string" && it !== "")).slice(0, 200);
  const isTaken = RESERVED_NAMES.includes(name) || tokens.some((token) => token.name === name);
  return isTaken ? `oidc:${name}` : name;
}

/** Throws for an account without a role. */
function groupsWithRights({ rightsByGroup, roleClaim }: OidcConfig, name: string, claims: Claims): string[] {
  const groups = groupsIn(claims, roleClaim);
  const known = groups.filter((group) => rightsByGroup.has(group));
  if (known.length > 0) return known;
  const held = groups.length === 0 ? "is missing from the claims" : `holds ${groups.slice(0, 20).join(", ")}`;
  const what = `${name} has no role: ${roleClaim} ${held}. The claims are ${Object.keys(claims).join(", ")}.`;
  throw new HttpError(
    403,
    "ROLE_MISSING",
    what,
    "Set OIDC_ROLE_CLAIM to the claim that holds the groups, and OIDC_ROLES to the role of each group.",
  );
}

function stateCookie(access: AccessConfig, headers: IncomingHttpHeaders, value: string, maxAgeS: number): string {
  // Lax: the redirect from the issuer is a cross-site navigation.
  return cookieText(COOKIE, value, { maxAgeS, sameSite: "Lax", isSecure: isSecure(headers, access.publicOrigin) });
}

function redirect(location: string, cookies: readonly string[]): Answer {
  return { status: 302, body: null, headers: { location, "set-cookie": [...cookies] } };
}
