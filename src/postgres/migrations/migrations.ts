import { relaySchemaMigration } from "./001-relay-schema.ts";
import type { Migration } from "./migration.ts";

/** In the order of their versions, without gaps. A released migration never changes. */
export const MIGRATIONS: readonly Migration[] = [relaySchemaMigration];

export const SCHEMA_VERSION = MIGRATIONS.length;
