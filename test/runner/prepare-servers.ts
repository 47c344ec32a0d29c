import { CHROMIUM, chromiumProgram } from "../servers/chromium.ts";
import { installPrograms } from "../servers/debian-programs.ts";
import { dynamoDbClassPath } from "../servers/dynamodb.ts";
import { elasticMqClassPath } from "../servers/elasticmq.ts";
import { hadolintProgram } from "../servers/hadolint.ts";
import { KAFKA } from "../servers/kafka-binaries.ts";
import { classArchive } from "../servers/kafka-templates.ts";
import { kubernetesValidateCommand } from "../servers/kubernetes-validate.ts";
import { JAVA } from "../servers/maven-jars.ts";
import { NATS } from "../servers/nats.ts";
import { NGINX } from "../servers/nginx.ts";
import { PGBOUNCER } from "../servers/pgbouncer.ts";
import { POSTGRES_15, postgresBinaries } from "../servers/postgres-binaries.ts";
import { prometheusProgram } from "../servers/promtool.ts";
import { RABBITMQ } from "../servers/rabbitmq.ts";
import { REDIS } from "../servers/redis.ts";
import { schemathesisCommand } from "../servers/schemathesis.ts";

/** What the servers need is fetched and made before the tests, once per machine: it may take longer than a test may. */
export async function prepareServers(): Promise<void> {
  // In one go: the lists of packages are fetched once.
  const databases = { ...POSTGRES_15, ...PGBOUNCER, ...REDIS };
  const programs = { ...databases, ...NATS, ...RABBITMQ, ...KAFKA, ...JAVA, ...NGINX, ...CHROMIUM };
  await installPrograms("real servers", programs);
  for (const version of [15, 18] as const) await postgresBinaries(version);
  await classArchive();
  await elasticMqClassPath();
  await dynamoDbClassPath();
  await prometheusProgram("promtool");
  await hadolintProgram();
  await kubernetesValidateCommand();
  await chromiumProgram();
  await schemathesisCommand();
}
