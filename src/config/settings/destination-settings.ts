import { setting } from "./setting.ts";
import { pem, text } from "./value-types.ts";

/** Settings of redis, rediss and bullmq+redis destinations that do not belong in an address. */
export const redisSettings = {
  REDIS_USERNAME: setting("destination.redis.username", text().optional(), "Redis user, if the address has none"),
  REDIS_PASSWORD: setting("destination.redis.password", text().optional(), "Redis password, if the address has none", {
    secret: true,
  }),
  REDIS_TLS_CA: setting(
    "destination.redis.tls.ca",
    pem().optional(),
    "CA certificates to trust, in PEM; for rediss addresses",
    { secret: true },
  ),
  REDIS_TLS_CERT: setting("destination.redis.tls.cert", pem().optional(), "Client certificate, in PEM", {
    secret: true,
  }),
  REDIS_TLS_KEY: setting("destination.redis.tls.key", pem().optional(), "Key of the client certificate, in PEM", {
    secret: true,
  }),
};

/** Settings of SQS destinations. The SDK finds keys, profile and role in its own variables and files. */
export const sqsSettings = {
  SQS_ENDPOINT: setting(
    "destination.sqs.endpoint",
    text().optional(),
    "Endpoint to use instead of Amazon's, such as http://localhost:9324",
    { aliases: ["AWS_ENDPOINT_URL_SQS"] },
  ),
};
