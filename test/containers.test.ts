import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { parse } from "yaml";
import { ENVIRONMENT_NAMES } from "../src/config/names.ts";
import { outboxTableSql } from "../src/outbox/index.ts";
import { runCommand, startService } from "./e2e/service-process.ts";
import { freePort } from "./servers/free-port.ts";
import { hadolintProgram } from "./servers/hadolint.ts";
import { type PostgresServer, startPostgres } from "./servers/postgres.ts";
import { type RabbitServer, startRabbit } from "./servers/rabbitmq.ts";
import { takeAll } from "./servers/rabbitmq-reader.ts";
import { until } from "./servers/until.ts";

const run = promisify(execFile);
const root = resolve(import.meta.dirname, "..");
const folder = join(root, "deploy/docker");
const dockerfile = readFileSync(join(folder, "Dockerfile"), "utf8");

interface Service {
  readonly build?: { readonly context: string; readonly dockerfile: string };
  readonly command?: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly volumes?: readonly string[];
  readonly depends_on?: Readonly<Record<string, unknown>>;
}

const { services } = parse(readFileSync(join(folder, "compose.yaml"), "utf8"), { merge: true }) as {
  services: Readonly<Record<string, Service>>;
};
const relay = services.relay!;

let postgres: PostgresServer;
let rabbit: RabbitServer;
before(async () => {
  postgres = await startPostgres({ version: 18 });
  rabbit = await startRabbit();
});
after(async () => {
  await rabbit[Symbol.asyncDispose]();
  await postgres[Symbol.asyncDispose]();
});

test("C8 hadolint finds nothing in the Dockerfile", async () => {
  const { stdout } = await run(await hadolintProgram(), ["--no-color", join(folder, "Dockerfile")]);
  assert.equal(stdout, "");
});

test("C8 the image runs as a user by number, is told to listen outside, and copies what exists", () => {
  const last = dockerfile.slice(dockerfile.lastIndexOf("\nFROM "));
  assert.match(last, /^USER [1-9]\d*:[1-9]\d*$/m);
  assert.match(last, /HOST=0\.0\.0\.0/);
  const names = [...last.matchAll(/\b([A-Z][A-Z_]+)=/g)].map(([, name]) => name!);
  assert.deepEqual(
    names.filter((name) => name !== "NODE_ENV" && !ENVIRONMENT_NAMES.has(name)),
    [],
  );
  const copied = [...dockerfile.matchAll(/^COPY (?!--)(.*) \S+$/gm)].flatMap(([, list = ""]) => list.split(" "));
  assert.deepEqual(
    copied.filter((path) => !existsSync(join(root, path))),
    [],
  );
  const { bin } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { bin: Record<string, string> };
  assert.ok(last.includes(`node_modules/outbox-relay/${bin["outbox-relay"]}`));
});

test("H1 C8 every stage that installs packages has the lockfile beside it", () => {
  const stages = dockerfile.split(/^(?=FROM )/m).filter((stage) => /\bnpm (?:ci|install)\b/.test(stage));
  assert.equal(stages.length, 2);
  for (const stage of stages) {
    const [before = "", command = ""] = stage.split(/(?=\bnpm (?:ci|install)\b)/);
    assert.match(before, /^COPY package\.json package-lock\.json \.\/$/m, "the versions are those of the lockfile");
    assert.doesNotMatch(command.split("\n")[0] ?? "", /\.tgz|@/, "nothing is resolved beside it");
  }
});

test("C8 the compose file names settings, files and services that exist", () => {
  for (const service of [services.migrate!, relay]) {
    assert.deepEqual(
      Object.keys(service.environment).filter((name) => !ENVIRONMENT_NAMES.has(name)),
      [],
    );
    assert.equal(resolve(folder, service.build!.context), root);
    assert.equal(join(root, service.build!.dockerfile), join(folder, "Dockerfile"));
  }
  for (const [name, { volumes = [], depends_on = {} }] of Object.entries(services)) {
    for (const volume of volumes) assert.ok(existsSync(join(folder, volume.split(":")[0]!)), `${name}: ${volume}`);
    for (const other of Object.keys(depends_on)) assert.ok(other in services, `${name}: ${other}`);
  }
});

test("C8 the compose file's table is the recommended one", () => {
  assert.equal(readFileSync(join(folder, "outbox.sql"), "utf8"), outboxTableSql("shop.outbox"));
});

test("C8 C3 with the environment of the compose file alone, the relay migrates, is healthy and delivers", async () => {
  const port = String(await freePort());
  // The names of the services are hosts only inside of the composition.
  const here = (value: string) =>
    value
      .replace("postgres:secret@postgres:5432", `postgres@127.0.0.1:${postgres.port}`)
      .replace("//rabbitmq:5672", `//127.0.0.1:${rabbit.port}`);
  const environmentOf = ({ environment }: Service) => ({
    ...Object.fromEntries(Object.entries(environment).map(([name, value]) => [name, here(value)])),
    HOST: "0.0.0.0",
    PORT: port,
  });
  await postgres.query(readFileSync(join(folder, "outbox.sql"), "utf8"));
  const migrated = await runCommand(services.migrate!.command!, environmentOf(services.migrate!), dirname(folder));
  assert.equal(migrated.code, 0, migrated.stderr);
  await postgres.query(`insert into shop.outbox (id, event_type, aggregate_id, payload)
    values ('00000000-0000-7000-8000-000000000001', 'order.placed', 'o-1', '{}')`);
  const user = { RABBITMQ_USERNAME: "guest", RABBITMQ_PASSWORD: "guest" };
  await using service = startService(["run"], { ...environmentOf(relay), ...user });
  await service.becomes("healthy");
  const check = /"-e", (".*")\]/.exec(dockerfile)?.[1] ?? "";
  const probe = ["-e", JSON.parse(check) as string];
  await run(process.execPath, probe, { env: { PORT: port } });
  await assert.rejects(run(process.execPath, probe, { env: { PORT: String(await freePort()) } }));
  const waiting = "select from shop.outbox where published_at is null";
  await until("it is delivered", async () => (await postgres.query(waiting)).rowCount === 0);
  service.kill("SIGTERM");
  assert.equal((await service.ended).code, 0);
  const messages = await takeAll(rabbit.url, "shop.mail");
  assert.deepEqual(
    messages.map(({ properties }) => properties.messageId),
    ["00000000-0000-7000-8000-000000000001"],
  );
});
