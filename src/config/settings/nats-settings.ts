import { setting } from "./setting.ts";
import { pem, text } from "./value-types.ts";

/** Settings of NATS destinations. */
export const natsSettings = {
  NATS_USER: setting("destination.nats.user", text().optional(), "NATS user, if the address has none"),
  NATS_PASSWORD: setting("destination.nats.password", text().optional(), "Password of NATS_USER", { secret: true }),
  NATS_TOKEN: setting("destination.nats.token", text().optional(), "NATS token, instead of a user", {
    secret: true,
  }),
  NATS_CREDENTIALS: setting(
    "destination.nats.credentials",
    pem().optional(),
    "Text of a NATS credentials file (.creds), instead of a user",
    { secret: true },
  ),
  NATS_TLS_CA: setting("destination.nats.tls.ca", pem().optional(), "CA certificates to trust, in PEM", {
    secret: true,
  }),
  NATS_TLS_CERT: setting("destination.nats.tls.cert", pem().optional(), "Client certificate, in PEM", {
    secret: true,
  }),
  NATS_TLS_KEY: setting("destination.nats.tls.key", pem().optional(), "Key of the client certificate, in PEM", {
    secret: true,
  }),
};
