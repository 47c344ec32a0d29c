import type { Configuration } from "openid-client";
import type { OidcConfig } from "../../config/access-config.ts";
import { reasonOf } from "../../core/errors.ts";
import { HttpError } from "../http-error.ts";

const TIMEOUT_S = 10;

/** Values that the callback must return unchanged. */
interface PendingLogin {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
  readonly redirectUrl: string;
}

/** Claims of the ID token. */
export type Claims = Readonly<Record<string, unknown>>;

/** Logins by OpenID Connect: authorization code with PKCE, state and nonce. The first login loads the client. */
export class OidcLogin {
  #of: OidcConfig | null = null;
  #client: Promise<Configuration> | null = null;

  /** The address to redirect the browser to. */
  async begin(oidc: OidcConfig, redirectUrl: string): Promise<{ readonly url: URL; readonly pending: PendingLogin }> {
    const client = await this.#clientOf(oidc);
    const { buildAuthorizationUrl, calculatePKCECodeChallenge, randomNonce, randomPKCECodeVerifier, randomState } =
      await import("openid-client");
    const pending = { state: randomState(), nonce: randomNonce(), verifier: randomPKCECodeVerifier(), redirectUrl };
    const url = buildAuthorizationUrl(client, {
      redirect_uri: redirectUrl,
      scope: oidc.scopes.join(" "),
      state: pending.state,
      nonce: pending.nonce,
      code_challenge: await calculatePKCECodeChallenge(pending.verifier),
      code_challenge_method: "S256",
    });
    return { url, pending };
  }

  /** The claims of the account that returns with `query`. Throws if the response does not belong to this login. */
  async finish(oidc: OidcConfig, pending: PendingLogin, query: URLSearchParams): Promise<Claims> {
    const client = await this.#clientOf(oidc);
    const { authorizationCodeGrant, fetchUserInfo } = await import("openid-client");
    const address = new URL(pending.redirectUrl);
    address.search = query.toString();
    try {
      const tokens = await authorizationCodeGrant(client, address, {
        expectedState: pending.state,
        expectedNonce: pending.nonce,
        pkceCodeVerifier: pending.verifier,
        idTokenExpected: true,
      });
      const claims: Claims = tokens.claims() ?? {};
      const isAsked = groupsIn(claims, oidc.roleClaim).length > 0 || !client.serverMetadata().userinfo_endpoint;
      return isAsked
        ? claims
        : { ...(await fetchUserInfo(client, tokens.access_token, String(claims.sub))), ...claims };
    } catch (error) {
      throw refusalOf(error);
    }
  }

  /** A failed discovery is not cached: the next login retries it. */
  async #clientOf(oidc: OidcConfig): Promise<Configuration> {
    if (this.#of !== oidc) this.#client = null;
    this.#of = oidc;
    this.#client ??= discovered(oidc);
    try {
      return await this.#client;
    } catch (error) {
      this.#client = null;
      const what = `The issuer ${oidc.issuer} did not answer as an OpenID Connect issuer: ${reasonOf(error)}`;
      throw new HttpError(
        502,
        "ISSUER_UNREACHABLE",
        what,
        "Check OIDC_ISSUER and that the issuer runs, or log in with a token.",
      );
    }
  }
}

async function discovered({ clientId, clientSecret, issuer }: OidcConfig): Promise<Configuration> {
  const { allowInsecureRequests, discovery, enableNonRepudiationChecks } = await import("openid-client");
  const url = new URL(issuer);
  // The settings allow plain HTTP only for an issuer on this machine.
  const execute = url.protocol === "http:" ? [allowInsecureRequests] : [];
  const client = await discovery(url, clientId, clientSecret, undefined, { execute, timeout: TIMEOUT_S });
  // Signatures are checked although the token comes directly from the issuer.
  enableNonRepudiationChecks(client);
  return client;
}

function refusalOf(error: unknown): HttpError {
  const { cause, code } = error as { readonly code?: string; readonly cause?: { readonly code?: string } };
  if (error instanceof TypeError || code === "OAUTH_TIMEOUT" || cause?.code === "ECONNREFUSED") {
    const what = `The issuer did not respond: ${reasonOf(error)}`;
    return new HttpError(502, "ISSUER_UNREACHABLE", what, "Try again, or log in with a token.");
  }
  return new HttpError(401, "LOGIN_REFUSED", `The login was refused: ${reasonOf(error)}`, "Log in again.");
}

/**
 * The groups in a claim that holds one or several. The claim's name may contain dots, or be a dotted path into nested
 * claims.
 */
export function groupsIn(claims: Claims, name: string): string[] {
  const inner = (value: unknown, part: string) =>
    typeof value === "object" && value !== null ? (value as Claims)[part] : undefined;
  const held = claims[name] ?? name.split(".").reduce(inner, claims as unknown);
  const values: unknown[] = Array.isArray(held) ? held : [held];
  return values.filter((value) => typeof value === "string");
}
