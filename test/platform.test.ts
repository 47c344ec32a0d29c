import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { parseEnv } from "node:util";
import { ENVIRONMENT_NAMES } from "../src/config/settings/names.ts";
import { runCommand, startService } from "./e2e/service-process.ts";
import { freePort } from "./servers/free-port.ts";
import { startPostgres } from "./servers/postgres.ts";
import { until } from "./servers/until.ts";

const root = resolve(import.meta.dirname, "..");
const folder = join(root, "deploy/platform");
const text = readFileSync(join(folder, "variables.env"), "utf8");
const variables = parseEnv(text) as Record<string, string>;

interface Railway {
  readonly build: { readonly dockerfilePath: string };
  readonly deploy: {
    readonly preDeployCommand: readonly [string];
    readonly healthcheckPath: string;
    readonly drainingSeconds: number;
  };
}

const { build, deploy } = JSON.parse(readFileSync(join(folder, "railway.json"), "utf8")) as Railway;

test("A14 C8 the platform's variables are settings, those in comments too", () => {
  const names = [...text.matchAll(/^#?([A-Z][A-Z_]+)=/gm)].map(([, name]) => name!);
  assert.ok(names.length > 20);
  assert.deepEqual(
    names.filter((name) => name !== "NODE_ENV" && !ENVIRONMENT_NAMES.has(name)),
    [],
  );
});

test("A21 C8 with the platform's variables and commands the relay migrates, becomes ready, shows metrics on a port of their own and stops in time", async () => {
  assert.ok(existsSync(join(root, build.dockerfilePath)));
  await using postgres = await startPostgres({ version: 15 });
  const schemas = variables.OUTBOX_SCHEMAS!.split(",");
  for (const schema of schemas) {
    await postgres.query(`create schema ${schema}; create table ${schema}.outbox (id uuid primary key, aggregate_id uuid not null,
      aggregate_type varchar(100) not null, event_type varchar(100) not null, payload jsonb not null, correlation_id uuid not null,
      created_at timestamptz not null default now(), published_at timestamptz, published boolean not null default false)`);
  }
  const port = String(await freePort());
  const metricsPort = String(await freePort());
  // Only the addresses differ. A port where nothing listens stands for Kafka: readiness does not depend on it.
  const here = { DATABASE_URL: postgres.url, PGSSLMODE: "disable", PORT: port, KAFKA_BROKERS: "127.0.0.1:9" };
  const env = { ...variables, ...here, METRICS_PORT: metricsPort };
  const [command] = deploy.preDeployCommand;
  const [program, ...args] = command.split(" ").slice(1);
  assert.match(program ?? "", /^node_modules\/outbox-relay\/bin\//, "where the image has it");
  const migrated = await runCommand(args, env);
  assert.equal(migrated.code, 0, migrated.stderr);
  await using service = startService(["run"], env);
  const isReady = async () => (await service.get(deploy.healthcheckPath).catch(() => null))?.status === 200;
  await until("it is ready", isReady);
  const { body } = await service.get("/metrics");
  const own = await fetch(`http://[::1]:${metricsPort}/metrics`);
  assert.deepEqual([own.status, /outbox_relay_build_info/.test(await own.text())], [200, /build_info/.test(body)]);
  assert.equal((await service.get("/api/v1/overview")).status, 401, "the API asks for the token");
  const stoppedAt = performance.now();
  service.kill("SIGTERM");
  assert.equal((await service.ended).code, 0);
  assert.ok(performance.now() - stoppedAt < deploy.drainingSeconds * 1_000);
});
