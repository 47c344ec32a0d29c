export type { TlsOptions } from "./core/tls.ts";
export { type RedisPublisherOptions, type RedisTls, redisPublisher } from "./publishers/redis/redis-publisher.ts";
