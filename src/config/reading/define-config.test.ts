import assert from "node:assert/strict";
import { test } from "node:test";
import { defineConfig } from "./define-config.ts";

test("A14 the compiler checks each key and value of a config program", () => {
  const config = defineConfig({
    database: { url: "postgres://h/d", passwordFile: "/run/secrets/pw" },
    http: { port: 3012 },
    sources: { schemas: ["a", "b"], pollInterval: "500ms", columns: { id: "No" } },
    destination: { kafka: { brokers: ["k:9092"], tls: { enabled: true } }, delivery: "exactly-once" },
    topics: { create: false },
    retry: { onExhausted: "park", maxAttempts: 3 },
  });
  assert.equal(config.http?.port, 3012);
  // @ts-expect-error a key that does not exist
  defineConfig({ http: { prot: 3012 } });
  // @ts-expect-error a value that the setting does not allow
  defineConfig({ retry: { onExhausted: "parc" } });
  // @ts-expect-error a string for a boolean
  defineConfig({ topics: { create: "maybe" } });
  // @ts-expect-error only secrets are read from files
  defineConfig({ http: { portFile: "/run/port" } });
  // @ts-expect-error a key in a deeper group that does not exist
  defineConfig({ destination: { kafka: { tls: { enabeld: true } } } });
});
