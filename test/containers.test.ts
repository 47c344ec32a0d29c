import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { parse, parseAllDocuments } from "yaml";
import { ENVIRONMENT_NAMES } from "../src/config/settings/names.ts";
import { outboxTableSql } from "../src/outbox/index.ts";
import { runCommand, startService } from "./e2e/service-process.ts";
import { freePort } from "./servers/free-port.ts";
import { hadolintProgram } from "./servers/hadolint.ts";
import { kubernetesValidateCommand } from "./servers/kubernetes-validate.ts";
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

const kubernetes = join(root, "deploy/kubernetes");
const manifests = ["secret.example.yaml", "migrate.yaml", "relay.yaml"].map((name) => join(kubernetes, name));

interface Container {
  readonly args: readonly string[];
  readonly ports?: readonly { readonly name: string }[];
  readonly livenessProbe?: { readonly httpGet: { readonly port: string } };
  readonly readinessProbe?: { readonly httpGet: { readonly port: string } };
  readonly securityContext: object;
  readonly env: readonly {
    name: string;
    value?: string;
    valueFrom?: { secretKeyRef: { name: string; key: string } };
  }[];
}

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly stringData?: Readonly<Record<string, string>>;
  readonly spec: {
    readonly selector?: { readonly matchLabels?: Labels } & Labels;
    readonly ports?: readonly { readonly targetPort: string }[];
    readonly template: {
      readonly metadata: { readonly labels: Labels };
      readonly spec: { readonly securityContext: object; readonly containers: readonly [Container] };
    };
  };
}

type Labels = Readonly<Record<string, string>>;

const objects = manifests.flatMap((file) =>
  parseAllDocuments(readFileSync(file, "utf8")).map((document) => document.toJS() as Manifest),
);
const objectOf = (kind: string) => objects.find((object) => object.kind === kind) ?? assert.fail(`no ${kind}`);

/** The environment of a container, with what it takes from the Secret. */
function environmentOf(kind: string): Record<string, string> {
  const { metadata, stringData = {} } = objectOf("Secret");
  const [{ env }] = objectOf(kind).spec.template.spec.containers;
  return Object.fromEntries(
    env.map(({ name, value, valueFrom }) => {
      if (value !== undefined) return [name, value];
      assert.equal(valueFrom?.secretKeyRef.name, metadata.name);
      return [name, stringData[valueFrom?.secretKeyRef.key ?? ""] ?? assert.fail(`${name} names no key of the Secret`)];
    }),
  );
}

test("C8 the Kubernetes manifests are what the schemas of its API ask for", async () => {
  const [program, ...words] = await kubernetesValidateCommand();
  const { stderr, stdout } = await run(program, [...words, "--strict", ...manifests]);
  assert.equal((stdout + stderr).match(/ passed for resource /g)?.length, objects.length);
});

test("C8 the Kubernetes manifests pass the restricted Pod Security standard, and name labels and ports that exist", () => {
  for (const kind of ["Job", "Deployment"]) {
    const { containers, securityContext: pod } = objectOf(kind).spec.template.spec;
    assert.deepEqual(pod, { runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } }, kind);
    const { securityContext } = containers[0];
    const restricted = { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } };
    assert.deepEqual(securityContext, { ...restricted, readOnlyRootFilesystem: true }, kind);
  }
  const { template } = objectOf("Deployment").spec;
  const { livenessProbe, ports = [], readinessProbe } = template.spec.containers[0];
  const names = ports.map(({ name }) => name);
  const service = objectOf("Service").spec;
  const used = [livenessProbe?.httpGet.port, readinessProbe?.httpGet.port, service.ports?.[0]?.targetPort];
  for (const port of used) assert.ok(names.includes(port ?? ""), `${port} is none of ${names}`);
  const { labels } = template.metadata;
  for (const kind of ["Deployment", "PodDisruptionBudget"]) {
    assert.deepEqual(objectOf(kind).spec.selector?.matchLabels, labels, kind);
  }
  assert.deepEqual(service.selector, labels);
  assert.notDeepEqual(objectOf("Job").spec.template.metadata.labels, labels, "the Service leads to no migration");
});

test("C8 C3 with the environment of the Kubernetes manifests the job migrates, and the relay is ready and asks for the token", async () => {
  await postgres.createDatabase("kubernetes");
  const database = postgres.databaseUrl("kubernetes");
  const env = (kind: string) => {
    const variables = environmentOf(kind);
    assert.deepEqual(
      Object.keys(variables).filter((name) => !ENVIRONMENT_NAMES.has(name)),
      [],
    );
    return { ...variables, DATABASE_URL: database };
  };
  const [job] = objectOf("Job").spec.template.spec.containers;
  const migrated = await runCommand(job.args, env("Job"));
  assert.equal(migrated.code, 0, migrated.stderr);
  const [relay] = objectOf("Deployment").spec.template.spec.containers;
  // As the image sets it. A port where nothing listens stands for Kafka: readiness does not depend on it.
  const here = { HOST: "0.0.0.0", PORT: String(await freePort()), OUTBOX_DESTINATION: "kafka://127.0.0.1:9" };
  for (const schema of ["orders", "payments"]) {
    await postgres.query(outboxTableSql(`${schema}.outbox`), [], "kubernetes");
  }
  const variables = { ...env("Deployment"), ...here };
  await using service = startService(relay.args, variables);
  await until("it is ready", async () => (await service.get("/readyz").catch(() => null))?.status === 200);
  assert.equal((await service.get("/api/v1/status")).status, 401);
  const token = { authorization: `Bearer ${environmentOf("Deployment").ADMIN_TOKEN}` };
  assert.equal((await fetch(`http://127.0.0.1:${here.PORT}/api/v1/status`, { headers: token })).status, 200);
});
