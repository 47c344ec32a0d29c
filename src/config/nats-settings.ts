import { setting } from "./setting.ts";
import { pem, text } from "./value-types.ts";

export const natsSettings = {
  NATS_USER: setting("destination.nats.user", text().optional(), "The user at NATS, where the address has none"),
  NATS_PASSWORD: setting("destination.nats.password", text().optional(), "Its password", { secret: true }),
  NATS_TOKEN: setting("destination.nats.token", text().optional(), "A token for NATS, instead of a user", {
    secret: true,
  }),
  NATS_CREDENTIALS: setting(
    "destination.nats.credentials",
    pem().optional(),
    "The text of a NATS credentials file (.creds), instead of a user",
    { secret: true },
  ),
  NATS_TLS_CA: setting("destination.nats.tls.ca", pem().optional(), "The certificates to trust at NATS, in PEM", {
    secret: true,
  }),
  NATS_TLS_CERT: setting("destination.nats.tls.cert", pem().optional(), "The relay's own certificate, in PEM", {
    secret: true,
  }),
  NATS_TLS_KEY: setting("destination.nats.tls.key", pem().optional(), "Its key, in PEM", { secret: true }),
};
