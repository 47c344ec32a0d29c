export type { RedisPlace, RedisSourceOptions } from "./sources/redis/redis-config.ts";
export {
  type NewRedisEvent,
  type RedisDeadLetter,
  type RedisOutbox,
  redisOutbox,
} from "./sources/redis/redis-outbox.ts";
export { redisSource } from "./sources/redis/redis-source.ts";
