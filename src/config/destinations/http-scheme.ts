import { RelayError, reasonOf } from "../../core/errors.ts";
import { jsonRedactor } from "../../core/redacted-json.ts";
import { type HttpPublisherOptions, type HttpTls, httpSettings } from "../../publishers/http/http-config.ts";
import { publishMsOf } from "../lease-timing.ts";
import type { Settings } from "../settings/settings.ts";
import { type DestinationScheme, refuseExactlyOnce } from "./destination-scheme.ts";
import { type HttpAddress, httpAddress } from "./http-address.ts";

/** HTTP endpoints, from `https://` addresses. */
export const httpScheme: DestinationScheme = {
  kind: "http",
  schemes: ["http", "https"],
  example: "https://host/path",
  configure(written) {
    refuseExactlyOnce(written, "HTTP");
    const { name, problems, setting, settings } = written;
    const address = httpAddress(written.address);
    if (typeof address === "string") {
      problems.push(`${setting} ${address}`);
      return null;
    }
    const options = optionsOf(name, address, settings, problems);
    try {
      httpSettings(options);
    } catch (error) {
      if (!(error instanceof RelayError)) throw error;
      problems.push(reasonOf(error));
      return null;
    }
    return {
      kind: "http",
      name,
      addresses: address.hostAndPort === null ? [] : [address.hostAndPort],
      isExactlyOnce: false,
      warnings: warningsOf(address, settings),
      options,
      async open() {
        const { httpPublisher } = await import("../../publishers/http/http-publisher.ts");
        return httpPublisher(options);
      },
    };
  },
};

function optionsOf(
  name: string,
  { authorization, url }: HttpAddress,
  settings: Settings,
  problems: string[],
): HttpPublisherOptions {
  const { HTTP_ALLOW_PRIVATE, HTTP_ALLOWED_HOSTS, HTTP_CONCURRENCY, HTTP_METHOD, HTTP_SIGNING_SECRET } = settings;
  const headers = { ...(authorization === null ? {} : { authorization }), ...settings.HTTP_HEADERS };
  const publishMs = publishMsOf(settings);
  return {
    name,
    url,
    headers,
    tls: tlsOf(settings, problems),
    // A receiver can quote the event in its answer, which must not show what REDACT hides.
    ...(settings.REDACT === undefined ? {} : { hideAnswer: jsonRedactor(settings.REDACT) }),
    // The request that starts last must also time out, with its reason, before the engine gives up the whole publish.
    sendMs: Math.round(publishMs * 0.2),
    requestTimeoutMs: Math.round(publishMs * 0.7),
    ...(HTTP_METHOD === undefined ? {} : { method: HTTP_METHOD }),
    ...(HTTP_SIGNING_SECRET === undefined ? {} : { signingSecrets: HTTP_SIGNING_SECRET }),
    ...(HTTP_CONCURRENCY === undefined ? {} : { concurrency: HTTP_CONCURRENCY }),
    ...(HTTP_ALLOWED_HOSTS === undefined ? {} : { allowedHosts: HTTP_ALLOWED_HOSTS }),
    ...(HTTP_ALLOW_PRIVATE === undefined ? {} : { allowPrivate: HTTP_ALLOW_PRIVATE }),
  };
}

function tlsOf(settings: Settings, problems: string[]): HttpTls {
  const { HTTP_TLS_CA: ca, HTTP_TLS_CERT: cert, HTTP_TLS_KEY: key, HTTP_TLS_KEY_PASSPHRASE: passphrase } = settings;
  if ((cert === undefined) !== (key === undefined)) {
    const [there, missing] = cert === undefined ? ["HTTP_TLS_KEY", "HTTP_TLS_CERT"] : ["HTTP_TLS_CERT", "HTTP_TLS_KEY"];
    problems.push(`${there} is set but ${missing} is not: a certificate and its key only work together`);
  }
  const given = Object.entries({ ca, cert, key, passphrase }).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given);
}

function warningsOf({ authorization, hostAndPort, isEncrypted }: HttpAddress, { HTTP_HEADERS }: Settings): string[] {
  if (isEncrypted || (authorization === null && HTTP_HEADERS === undefined)) return [];
  if (hostAndPort !== null && /^(?:localhost|127\.|\[::1\])/.test(hostAndPort)) return [];
  return ["HTTP_HEADERS or the password goes over the network unencrypted: write https:// if the receiver supports it"];
}
