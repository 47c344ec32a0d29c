import { setting } from "./setting.ts";
import { flag, list, oneOf, pairs, pem, text, wholeNumber } from "./value-types.ts";

export const httpSettings = {
  HTTP_METHOD: setting(
    "destination.http.method",
    oneOf(["POST", "PUT", "PATCH"]).optional(),
    "How events are sent; POST by default",
  ),
  HTTP_HEADERS: setting(
    "destination.http.headers",
    pairs().optional(),
    "Headers of every request, such as authorization=Bearer TOKEN",
    { secret: true },
  ),
  HTTP_SIGNING_SECRET: setting(
    "destination.http.signingSecret",
    list().optional(),
    "Signs every request as Standard Webhooks says: whsec_ and base64; while secrets change, both with a comma between",
    { secret: true },
  ),
  HTTP_CONCURRENCY: setting(
    "destination.http.concurrency",
    wholeNumber(1, 1_000).optional(),
    "Requests to one host at a time; 32 by default",
  ),
  HTTP_ALLOWED_HOSTS: setting(
    "destination.http.allowedHosts",
    list().optional(),
    "Hosts that events may name, where the address takes its host from them: hooks.example.org, *.example.org; required with HTTP_HEADERS, a login or a client certificate",
  ),
  HTTP_ALLOW_PRIVATE: setting(
    "destination.http.allowPrivate",
    flag().optional(),
    "true lets events name hosts with private and loopback addresses too",
  ),
  HTTP_TLS_CA: setting("destination.http.tls.ca", pem().optional(), "The certificates to trust, in PEM", {
    secret: true,
  }),
  HTTP_TLS_CERT: setting("destination.http.tls.cert", pem().optional(), "The relay's own certificate, in PEM", {
    secret: true,
  }),
  HTTP_TLS_KEY: setting("destination.http.tls.key", pem().optional(), "Its key, in PEM", { secret: true }),
  HTTP_TLS_KEY_PASSPHRASE: setting("destination.http.tls.passphrase", text().optional(), "The key's passphrase", {
    secret: true,
  }),
};
