import { setting } from "./setting.ts";
import { pem, text } from "./value-types.ts";

/** Of redis, rediss and bullmq+redis: what does not belong into an address. */
export const redisSettings = {
  REDIS_USERNAME: setting("destination.redis.username", text().optional(), "The user, unless the address has one"),
  REDIS_PASSWORD: setting("destination.redis.password", text().optional(), "The password, unless the address has one", {
    secret: true,
  }),
  REDIS_TLS_CA: setting(
    "destination.redis.tls.ca",
    pem().optional(),
    "The certificates to trust, in PEM; for rediss addresses",
    { secret: true },
  ),
  REDIS_TLS_CERT: setting("destination.redis.tls.cert", pem().optional(), "The relay's own certificate, in PEM", {
    secret: true,
  }),
  REDIS_TLS_KEY: setting("destination.redis.tls.key", pem().optional(), "Its key, in PEM", { secret: true }),
};
