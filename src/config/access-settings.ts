import { setting } from "./setting.ts";
import { duration, list, text, wholeNumber } from "./value-types.ts";

/** Who may use API and console, and as what. */
export const accessSettings = {
  ADMIN_TOKEN: setting(
    "http.adminToken",
    text().optional(),
    "Who sends it as a bearer token may use the API and the console as an administrator; this, API_TOKENS or OIDC_ISSUER is needed as soon as HOST is not this machine alone or a proxy stands in front of it",
    { secret: true },
  ),
  API_TOKENS: setting(
    "http.tokens",
    list().optional(),
    "More tokens as name:role:token, with a comma or a line end between; roles are viewer, operator and admin, with +payloads behind them for payloads; sha256:HEX may stand for a token",
    { secret: true },
  ),
  SESSION_SECRET: setting(
    "http.sessionSecret",
    text().optional(),
    "Signs the console's sessions together with tokens and OIDC_CLIENT_SECRET; of use where all tokens are written as sha256",
    { secret: true },
  ),
  PUBLIC_URL: setting(
    "http.publicUrl",
    text().optional(),
    "The address under which browsers see the console, behind a proxy: https://relay.example.org; API and console then need a token or an issuer",
  ),
  API_REQUESTS_PER_SECOND: setting(
    "http.requestsPerSecond",
    wholeNumber(1, 1_000_000).default(100),
    "How much of the API one token, one person or one address may use; twice as many at once",
  ),
  OIDC_ISSUER: setting(
    "http.oidc.issuer",
    text().optional(),
    "Lets people log in to the console with accounts of this OpenID Connect issuer: https://id.example.org",
  ),
  OIDC_CLIENT_ID: setting("http.oidc.clientId", text().optional(), "The relay's client id there"),
  OIDC_CLIENT_SECRET: setting("http.oidc.clientSecret", text().optional(), "Its secret", { secret: true }),
  OIDC_REDIRECT_URL: setting(
    "http.oidc.redirectUrl",
    text().optional(),
    "Where the issuer sends people back to; PUBLIC_URL or the request's own address with /api/v1/login/oidc/callback by default",
  ),
  OIDC_SCOPES: setting("http.oidc.scopes", list().optional(), "What is asked for; openid,profile,email by default"),
  OIDC_ROLE_CLAIM: setting(
    "http.oidc.roleClaim",
    text(200).default("roles"),
    "The claim that holds the groups of a person, with dots for claims within claims: realm_access.roles",
  ),
  OIDC_SESSION: setting(
    "http.oidc.session",
    duration({ minMs: 60_000, maxMs: 43_200_000 }).default(900_000),
    "How long a login by OpenID Connect holds; then the console asks the issuer again, and a role that was taken away is gone",
  ),
  OIDC_ROLES: setting(
    "http.oidc.roles",
    list().optional(),
    "Which groups are which role: viewer=support,operator+payloads=oncall,admin=platform; nobody without one gets in",
  ),
};
