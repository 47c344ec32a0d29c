import { setting } from "./setting.ts";
import { duration, list, text, wholeNumber } from "./value-types.ts";

/** Settings of the access to API and console. */
export const accessSettings = {
  ADMIN_TOKEN: setting(
    "http.adminToken",
    text().optional(),
    "Bearer token of the administrator for the API and the console. This, API_TOKENS or OIDC_ISSUER is required when HOST accepts other machines, or behind a proxy",
    { secret: true },
  ),
  API_TOKENS: setting(
    "http.tokens",
    list().optional(),
    "Additional tokens as name:role:token, separated by commas or line ends. Roles are viewer, operator and admin; append +payloads to show payloads. sha256:HEX can replace a token",
    { secret: true },
  ),
  SESSION_SECRET: setting(
    "http.sessionSecret",
    text().optional(),
    "Signs the console's sessions, together with tokens and OIDC_CLIENT_SECRET; useful if all tokens are written as sha256",
    { secret: true },
  ),
  PUBLIC_URL: setting(
    "http.publicUrl",
    text().optional(),
    "Public address of the console behind a proxy, such as https://relay.example.org; API and console then need a token or an issuer",
  ),
  API_REQUESTS_PER_SECOND: setting(
    "http.requestsPerSecond",
    wholeNumber(1, 1_000_000).default(100),
    "API requests per second for each token, user or address, with bursts of twice as many",
  ),
  OIDC_ISSUER: setting(
    "http.oidc.issuer",
    text().optional(),
    "OpenID Connect issuer whose users can log in to the console, such as https://id.example.org",
  ),
  OIDC_CLIENT_ID: setting("http.oidc.clientId", text().optional(), "The relay's client id at the issuer"),
  OIDC_CLIENT_SECRET: setting("http.oidc.clientSecret", text().optional(), "Client secret for OIDC_CLIENT_ID", {
    secret: true,
  }),
  OIDC_REDIRECT_URL: setting(
    "http.oidc.redirectUrl",
    text().optional(),
    "Redirect URL of the login; default: PUBLIC_URL, or the request's own address, with /api/v1/login/oidc/callback",
  ),
  OIDC_SCOPES: setting("http.oidc.scopes", list().optional(), "Scopes to request; default: openid,profile,email"),
  OIDC_ROLE_CLAIM: setting(
    "http.oidc.roleClaim",
    text(200).default("roles"),
    "The claim with the user's groups; dots select nested claims: realm_access.roles",
  ),
  OIDC_SESSION: setting(
    "http.oidc.session",
    duration({ minMs: 60_000, maxMs: 43_200_000 }).default(900_000),
    "How long an OpenID Connect login lasts before the console asks the issuer again; a removed role ends with it",
  ),
  OIDC_ROLES: setting(
    "http.oidc.roles",
    list().optional(),
    "Maps groups to roles: viewer=support,operator+payloads=oncall,admin=platform; users without a role cannot log in",
  ),
};
