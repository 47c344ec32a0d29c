import type { FoundTable } from "../config/sources/find-tables.ts";
import type { RedisStoreConfig } from "../config/sources/redis-store-config.ts";
import { redisOutbox } from "../sources/redis/redis-outbox.ts";
import { redisSource } from "../sources/redis/redis-source.ts";
import type { OutboxStore } from "./outbox-store.ts";

/** The outbox as a table is listed. */
export function redisTable({ name, schema }: RedisStoreConfig): FoundTable {
  return { schema, table: name, preset: "flag", subscriber: null, isDebezium: false, isSerial: false, isThere: true };
}

/** The store for one outbox in Redis. It has no schema to migrate and exists as soon as something is written. */
export function redisOutboxStore(config: RedisStoreConfig): OutboxStore {
  const { name, url } = config;
  const outbox = redisOutbox({ url, name });
  return {
    async ping() {
      await outbox.deadLetters(1);
    },
    migrate: async () => [],
    requireFit: async () => {},
    find: async () => [redisTable(config)],
    source: ({ schema: group, table }) => redisSource({ url, name: table, sourceName: `${group}.${table}` }),
    upkeep: async () => [],
    logFigures: async () => [],
    questions: null,
    close: () => outbox.close(),
  };
}
