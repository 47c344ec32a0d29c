import { createHash, createSign, generateKeyPairSync, type KeyObject, randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** In which way the next logins are not what was asked for. */
export type Fault = "state" | "nonce" | "signature" | "audience" | "expired" | "issuer" | "silent";

export const CLIENT = { id: "relay client", secret: "issued-to-the-relay: 100% & more" };

/** An issuer of OpenID Connect with one account that is logged in already: discovery, keys, code with PKCE, RS256. */
export interface OidcIssuer extends AsyncDisposable {
  readonly url: string;
  /** Of the account, beside `sub`. */
  claims: Readonly<Record<string, unknown>>;
  /** What only the address for it tells; null where there is none. */
  userInfo: Readonly<Record<string, unknown>> | null;
  fault: Fault | null;
}

interface Grant {
  readonly challenge: string;
  readonly nonce: string;
  readonly redirectUrl: string;
}

export async function startOidcIssuer(): Promise<OidcIssuer> {
  const [own, other] = [keyPair(), keyPair()];
  const grants = new Map<string, Grant>();
  const server = createServer(async (request, response) => {
    const url = new URL(request.url ?? "", issuer.url);
    const keys = issuer.fault === "signature" ? other : own;
    const key = { ...own.publicKey.export({ format: "jwk" }), kid: "own", use: "sig", alg: "RS256" };
    if (url.pathname === "/.well-known/openid-configuration") json(response, 200, discovery(issuer));
    else if (url.pathname === "/keys") json(response, 200, { keys: [key] });
    else if (url.pathname === "/authorize") authorize(response, url.searchParams, grants, issuer.fault);
    else if (url.pathname === "/token") await token(request, response, grants, issuer, keys);
    else if (url.pathname === "/userinfo") json(response, 200, { sub: SUBJECT, ...issuer.userInfo });
    else json(response, 404, {});
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const issuer: OidcIssuer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    claims: {},
    userInfo: null,
    fault: null,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return issuer;
}

const SUBJECT = "account-7";

function keyPair(): { readonly publicKey: KeyObject; readonly privateKey: KeyObject } {
  return generateKeyPairSync("rsa", { modulusLength: 2048 });
}

function discovery({ url, userInfo }: OidcIssuer): object {
  return {
    issuer: url,
    authorization_endpoint: `${url}/authorize`,
    token_endpoint: `${url}/token`,
    jwks_uri: `${url}/keys`,
    ...(userInfo === null ? {} : { userinfo_endpoint: `${url}/userinfo` }),
    response_types_supported: ["code"],
    subject_types_supported: ["public"],
    id_token_signing_alg_values_supported: ["RS256"],
    code_challenge_methods_supported: ["S256"],
    token_endpoint_auth_methods_supported: ["client_secret_post"],
  };
}

function authorize(
  response: ServerResponse,
  asked: URLSearchParams,
  grants: Map<string, Grant>,
  fault: Fault | null,
): void {
  const wanted = { response_type: "code", client_id: CLIENT.id, code_challenge_method: "S256" };
  const redirectUrl = asked.get("redirect_uri") ?? "";
  const isSound = Object.entries(wanted).every(([name, value]) => asked.get(name) === value);
  const [challenge, nonce, state] = ["code_challenge", "nonce", "state"].map((name) => asked.get(name));
  if (!isSound || !challenge || !nonce || !state || !asked.get("scope")?.split(" ").includes("openid")) {
    json(response, 400, { error: "invalid_request" });
    return;
  }
  const code = randomUUID();
  grants.set(code, { challenge, nonce, redirectUrl });
  const back = new URL(redirectUrl);
  back.searchParams.set("code", code);
  back.searchParams.set("state", fault === "state" ? "somebody else's" : state);
  response.writeHead(302, { location: back.href }).end();
}

async function token(
  request: IncomingMessage,
  response: ServerResponse,
  grants: Map<string, Grant>,
  { claims, fault, url }: OidcIssuer,
  keys: { readonly privateKey: KeyObject },
): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  if (fault === "silent") {
    request.socket.destroy();
    return;
  }
  const sent = new URLSearchParams(Buffer.concat(chunks).toString());
  if (sent.get("client_id") !== CLIENT.id || sent.get("client_secret") !== CLIENT.secret) {
    json(response, 401, { error: "invalid_client" });
    return;
  }
  const code = sent.get("code") ?? "";
  const grant = grants.get(code);
  grants.delete(code);
  const challenge = createHash("sha256")
    .update(sent.get("code_verifier") ?? "")
    .digest("base64url");
  if (grant?.challenge !== challenge || grant.redirectUrl !== sent.get("redirect_uri")) {
    json(response, 400, { error: "invalid_grant" });
    return;
  }
  const now = Math.floor(Date.now() / 1_000);
  const idToken = signedToken(keys.privateKey, {
    iss: fault === "issuer" ? "https://other.example" : url,
    aud: fault === "audience" ? "another client" : CLIENT.id,
    nonce: fault === "nonce" ? "somebody else's" : grant.nonce,
    iat: now - 60,
    exp: fault === "expired" ? now - 30 : now + 300,
    sub: SUBJECT,
    ...claims,
  });
  json(response, 200, { access_token: "for-userinfo", token_type: "Bearer", expires_in: 300, id_token: idToken });
}

function signedToken(key: KeyObject, claims: object): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const text = `${part({ alg: "RS256", typ: "JWT", kid: "own" })}.${part(claims)}`;
  return `${text}.${createSign("sha256").update(text).sign(key).toString("base64url")}`;
}

function json(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}
