import assert from "node:assert/strict";
import { test } from "node:test";
import { clearTextWarnings } from "./clear-text-warnings.ts";
import { settingsSchema } from "./settings/settings.ts";

const warned = (env: Readonly<Record<string, string>>) => clearTextWarnings(settingsSchema.parse(env)).length;

test("H1 A20 a password that would travel unencrypted causes a warning, PostgreSQL's too", () => {
  for (const env of [
    { DATABASE_URL: "postgres://me:pw@db/shop" },
    { DATABASE_URL: "postgres://db/shop?user=me&password=pw" },
    { DATABASE_URL: "postgres://me:pw@localhost:5432,db:5432/shop" },
    { DATABASE_URL: "postgres://me:pw@db/shop?sslmode=disable", PGSSLMODE: "require" },
    { DATABASE_URL: "postgres://me@db/shop", PGPASSWORD: "pw" },
    { PGHOST: "db", PGDATABASE: "shop", PGUSER: "me", PGPASSWORD: "pw" },
    { OUTBOX_STORE: "redis://:pw@redis/0" },
    { OUTBOX_STORE: "redis://redis/0", REDIS_PASSWORD: "pw" },
    { KURRENTDB_URL: "kurrentdb://admin:pw@store?tls=false" },
    { LOKI_HOST: "http://loki:3100", LOKI_BASIC_AUTH: "me:pw" },
    { ALLOY_PUSH_URL: "http://me:pw@alloy/api/v1/write" },
    { OTEL_EXPORTER_OTLP_ENDPOINT: "http://otel:4318", OTEL_EXPORTER_OTLP_HEADERS: "api-key=pw" },
    { KAFKA_OAUTH_TOKEN_URL: "http://id/token", KAFKA_OAUTH_CLIENT_SECRET: "pw" },
  ]) {
    assert.equal(warned(env), 1, JSON.stringify(env));
  }
});

test("H1 A20 no warning with encryption, on this machine, or without a password", () => {
  for (const env of [
    { DATABASE_URL: "postgres://me:pw@db/shop?sslmode=require" },
    { DATABASE_URL: "postgres://me:pw@db/shop", PGSSLMODE: "verify-full" },
    { DATABASE_URL: "postgres://me:pw@127.0.0.1:5432/shop" },
    { DATABASE_URL: "postgres://me:pw@[::1]:5432/shop" },
    { DATABASE_URL: "postgres://me:pw@/shop?host=/run/postgresql" },
    { DATABASE_URL: "postgres://me@db/shop" },
    { OUTBOX_STORE: "rediss://:pw@redis/0" },
    { KURRENTDB_URL: "kurrentdb://admin:pw@store?tls=true" },
    { LOKI_HOST: "https://loki", LOKI_BASIC_AUTH: "me:pw" },
    { LOKI_HOST: "http://loki:3100" },
  ]) {
    assert.equal(warned(env), 0, JSON.stringify(env));
  }
});
