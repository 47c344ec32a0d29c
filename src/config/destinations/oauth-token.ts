import { RelayError, reasonOf } from "../../core/errors.ts";
import { shownAddress } from "../reading/address-secrets.ts";

interface ClientCredentials {
  readonly url: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly scope: string | null;
}

/** A token is renewed after this share of its lifetime, so that none expires in transit. */
const USED_SHARE = 0.8;
const ANSWER_MS = 5_000;

/** Fetches tokens by client credentials, and caches each while it is fresh. Concurrent callers share one request. */
export function clientCredentials(
  credentials: ClientCredentials,
  monotonicMs: () => number = () => performance.now(),
): () => Promise<string> {
  let known: { readonly token: string; readonly untilMs: number } | null = null;
  let asking: Promise<string> | null = null;

  async function renew(): Promise<string> {
    const askedMs = monotonicMs();
    const { token, lifeMs } = await ask(credentials);
    known = { token, untilMs: askedMs + lifeMs * USED_SHARE };
    return token;
  }

  return async () => {
    if (known !== null && monotonicMs() < known.untilMs) return known.token;
    asking ??= renew().finally(() => {
      asking = null;
    });
    return await asking;
  };
}

async function ask({
  url,
  clientId,
  clientSecret,
  scope,
}: ClientCredentials): Promise<{ token: string; lifeMs: number }> {
  const form = new URLSearchParams({ grant_type: "client_credentials", ...(scope === null ? {} : { scope }) });
  const basic = Buffer.from(`${encodeURIComponent(clientId)}:${encodeURIComponent(clientSecret)}`).toString("base64");
  try {
    const response = await fetch(url, {
      method: "POST",
      headers: { authorization: `Basic ${basic}`, accept: "application/json" },
      body: form,
      signal: AbortSignal.timeout(ANSWER_MS),
    });
    if (!response.ok) throw new Error(`it answered ${response.status}`);
    const answer = (await response.json()) as { access_token?: unknown; expires_in?: unknown };
    if (typeof answer.access_token !== "string") throw new Error("its answer has no access_token");
    const lifeMs = typeof answer.expires_in === "number" ? answer.expires_in * 1_000 : 0;
    return { token: answer.access_token, lifeMs };
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? ` (${error.cause.message})` : "";
    throw new RelayError(
      "DESTINATION_UNREACHABLE",
      `Cannot get a token from ${shownAddress(url)}: ${reasonOf(error)}${cause}`,
    );
  }
}
