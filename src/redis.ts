export { type RedisPublisherOptions, type RedisTls, redisPublisher } from "./publishers/redis/redis-publisher.ts";
