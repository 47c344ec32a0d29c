import { setting } from "./setting.ts";
import { flag, list, oneOf, pairs, pem, text, wholeNumber } from "./value-types.ts";

/** Settings of HTTP destinations. */
export const httpSettings = {
  HTTP_METHOD: setting(
    "destination.http.method",
    oneOf(["POST", "PUT", "PATCH"]).optional(),
    "HTTP method; default: POST",
  ),
  HTTP_HEADERS: setting(
    "destination.http.headers",
    pairs().optional(),
    "Headers for every request, such as authorization=Bearer TOKEN",
    { secret: true },
  ),
  HTTP_SIGNING_SECRET: setting(
    "destination.http.signingSecret",
    list().optional(),
    "Signs every request by Standard Webhooks: whsec_ and base64. To rotate the secret, write both, separated by a comma",
    { secret: true },
  ),
  HTTP_CONCURRENCY: setting(
    "destination.http.concurrency",
    wholeNumber(1, 1_000).optional(),
    "Concurrent requests per host; default: 32",
  ),
  HTTP_ALLOWED_HOSTS: setting(
    "destination.http.allowedHosts",
    list().optional(),
    "Hosts that events may name if the address takes its host from them: hooks.example.org, *.example.org; required with HTTP_HEADERS, a login or a client certificate",
  ),
  HTTP_ALLOW_PRIVATE: setting(
    "destination.http.allowPrivate",
    flag().optional(),
    "true allows events to name hosts with private and loopback addresses",
  ),
  HTTP_TLS_CA: setting("destination.http.tls.ca", pem().optional(), "CA certificates to trust, in PEM", {
    secret: true,
  }),
  HTTP_TLS_CERT: setting("destination.http.tls.cert", pem().optional(), "Client certificate, in PEM", {
    secret: true,
  }),
  HTTP_TLS_KEY: setting("destination.http.tls.key", pem().optional(), "Key of the client certificate, in PEM", {
    secret: true,
  }),
  HTTP_TLS_KEY_PASSPHRASE: setting("destination.http.tls.passphrase", text().optional(), "Passphrase of the key", {
    secret: true,
  }),
};
