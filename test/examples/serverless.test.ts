import assert from "node:assert/strict";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { DescribeTableCommand, DynamoDBClient, paginateScan } from "@aws-sdk/client-dynamodb";
import { DynamoDBStreamsClient } from "@aws-sdk/client-dynamodb-streams";
import { App } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { type BundledRelay, bundled } from "../../deploy/cdk/bundle.ts";
import { OutboxRelayStack } from "../../deploy/cdk/outbox-relay-stack.ts";
import { relayEntries } from "../../deploy/cdk/relay-entries.ts";
import { type DynamoDbOutbox, dynamodbOutbox } from "../../src/dynamodb-outbox.ts";
import { openChangeStream } from "../../src/dynamodb-runner/change-stream.ts";
import { lambdaRecord } from "../../src/dynamodb-runner/lambda-record.ts";
import { type FilterPattern, matchesFilter } from "../../src/lambda/filter-pattern.ts";
import type { LambdaContext, StreamRecord } from "../../src/lambda/lambda-events.ts";
import type { IntentHandler } from "../../src/lambda.ts";
import { runCommand, startService } from "../e2e/service-process.ts";
import { DYNAMODB_ENVIRONMENT, type DynamoDb, startDynamoDb } from "../servers/dynamodb.ts";
import { type ElasticMq, startElasticMq } from "../servers/elasticmq.ts";
import { freePort } from "../servers/free-port.ts";
import { type KafkaServer, startKafka } from "../servers/kafka.ts";
import { headerText, readTopic } from "../servers/kafka-reader.ts";
import { until } from "../servers/until.ts";
import { type DynamoDbCalls, startDynamoDbCalls } from "./dynamodb-calls.ts";
import { type PayrollDesk, startPayrollDesk } from "./payroll-desk.ts";

const FOLDER = fileURLToPath(new URL("../../examples/serverless/", import.meta.url));
const BUNDLE_BYTES_MAX = 5_000_000;
const textOf = (file: string) => readFileSync(join(FOLDER, file), "utf8");

interface Resource {
  readonly Properties: Readonly<Record<string, unknown>>;
}

let dynamodb: DynamoDb;
let calls: DynamoDbCalls;
let kafka: KafkaServer;
let sqs: ElasticMq;
let payroll: PayrollDesk;
let env: Record<string, string>;
let outdir: string;
let relays: readonly BundledRelay[];
let stack: OutboxRelayStack;
let template: Template;
let client: DynamoDBClient;
let outbox: DynamoDbOutbox;
let queueUrl: string;
const handlers = new Map<string, IntentHandler>();

before(async () => {
  [dynamodb, kafka, sqs, payroll] = await Promise.all([
    startDynamoDb(),
    startKafka(),
    startElasticMq(),
    startPayrollDesk(),
  ]);
  calls = await startDynamoDbCalls(dynamodb.endpoint);
  await kafka.createTopic("user-notifications", { partitions: 1 });
  queueUrl = await sqs.createQueue("callers.fifo");
  env = {
    ...DYNAMODB_ENVIRONMENT,
    NOTIFICATIONS_BROKERS: kafka.brokers,
    PAYROLL_URL: payroll.origin,
    CALLERS_QUEUE: `eu-central-1/callers.fifo?endpoint=${sqs.endpoint}`,
    AWS_ENDPOINT_URL_DYNAMODB: dynamodb.endpoint,
    AWS_ENDPOINT_URL_DYNAMODB_STREAMS: dynamodb.endpoint,
  };
  // The functions run in this process, and their DynamoDB is the one that writes down what they ask.
  Object.assign(process.env, env, { AWS_ENDPOINT_URL_DYNAMODB: calls.endpoint });
  client = new DynamoDBClient({ endpoint: dynamodb.endpoint });
  outbox = dynamodbOutbox({ client });
  outdir = mkdtempSync(join(tmpdir(), "outbox-relay-bundles-"));
  relays = await bundled(await relayEntries(FOLDER), join(outdir, "bundles"));
  stack = new OutboxRelayStack(new App({ outdir }), "Outbox", { relays });
  template = Template.fromStack(stack);
});
after(async () => {
  await Promise.all([...handlers.values()].map((handler) => handler.close()));
  client?.destroy();
  if (outdir !== undefined) rmSync(outdir, { recursive: true, force: true });
  await Promise.all([calls, dynamodb, kafka, sqs, payroll].map((server) => server?.[Symbol.asyncDispose]()));
});

async function program(file: string): Promise<string> {
  await using running = startService([join(FOLDER, file)], env, process.execPath, FOLDER);
  const { code, stdout, stderr } = await running.ended;
  assert.equal(code, 0, stderr);
  return stdout.trim();
}

interface Row {
  readonly id: string;
  readonly type: string;
  readonly isDelivered: boolean;
  readonly attempts: number;
}

async function intents(): Promise<readonly Row[]> {
  const rows: Row[] = [];
  for await (const { Items = [] } of paginateScan({ client }, { TableName: "outbox", ConsistentRead: true })) {
    for (const { attempt_count, delivered_at, id, intent } of Items) {
      const type = intent?.M?.type?.S ?? "";
      rows.push({ id: id?.S ?? "", type, isDelivered: delivered_at !== undefined, attempts: Number(attempt_count?.N) });
    }
  }
  return rows.sort((left, right) => left.id.localeCompare(right.id));
}

/** All that the outbox's stream holds, as functions are given it. */
async function streamed(): Promise<readonly StreamRecord[]> {
  const streams = new DynamoDBStreamsClient({ endpoint: dynamodb.endpoint });
  try {
    const { Table } = await client.send(new DescribeTableCommand({ TableName: "outbox" }));
    const stream = await openChangeStream(streams, Table!.LatestStreamArn!);
    const records: StreamRecord[] = [];
    for (const { id } of await stream.shards()) {
      const page = await stream.page(await stream.iteratorAfter(id, null));
      records.push(...(page?.records ?? []).map((record) => lambdaRecord(record, stream.arn)));
    }
    return records;
  } finally {
    streams.destroy();
  }
}

const context: LambdaContext = { getRemainingTimeInMillis: () => 30_000 };

/** What AWS does with what is new in the stream: by the template's filters, to the functions that it names. */
async function mapped(records: readonly StreamRecord[]): Promise<void> {
  const mappings = Object.values(template.findResources("AWS::Lambda::EventSourceMapping") as Record<string, Resource>);
  for (const { Properties } of mappings) {
    const { Filters } = Properties.FilterCriteria as { Filters: readonly { Pattern: string }[] };
    const filters = Filters.map(({ Pattern }) => JSON.parse(Pattern) as FilterPattern);
    const [type] = [...stack.relays].find(([, { function: made }]) => {
      const id = stack.getLogicalId(made.node.defaultChild as Parameters<typeof stack.getLogicalId>[0]);
      return (Properties.FunctionName as { Ref: string }).Ref === id;
    })!;
    const Records = records.filter((record) => filters.some((filter) => matchesFilter(filter, record)));
    assert.deepEqual(await handlers.get(type)!({ Records }, context), { batchItemFailures: [] });
  }
}

const sections = textOf("expected-output.txt").split("\n\n");
const withoutId = (text: string) => text.replace(/"idempotency_key":"[0-9a-f-]{36}"/, '"idempotency_key":"<id>"');
const keyIn = (body: Buffer | string) => (JSON.parse(body.toString()) as { idempotency_key: string }).idempotency_key;

test("D1 D3 D4: the handler writes intents in the transaction of its decision, and nothing else", async () => {
  assert.equal((await runCommand(["dynamodb", "create"], env, FOLDER)).code, 0);
  await program("create-entries.ts");
  assert.equal(await program("decide-entries.ts"), sections[0]);
  const rows = await intents();
  assert.equal(rows.length, 5);
  assert.ok(rows.every(({ attempts, isDelivered }) => !isDelivered && attempts === 0));
});

test("D2 D10: each function is one file under 5 MB that runs where nothing is installed", async (t) => {
  for (let folder = outdir; folder !== dirname(folder); folder = dirname(folder)) {
    assert.ok(!existsSync(join(folder, "node_modules")), folder);
  }
  for (const { bytes, code, intentType, name } of relays) {
    assert.deepEqual(readdirSync(code), ["index.mjs"]);
    t.diagnostic(`${name}: ${(bytes / 1e6).toFixed(2)} MB`);
    assert.ok(bytes < BUNDLE_BYTES_MAX, `${name} has ${bytes} bytes`);
    const file = join(code, "index.mjs");
    assert.equal(statSync(file).size, bytes);
    const { handler } = (await import(pathToFileURL(file).href)) as { readonly handler: IntentHandler };
    assert.equal(handler.type, intentType);
    handlers.set(intentType, handler);
  }
  assert.equal(handlers.size, 3);
});

test("D2 D3 D4: fed by the stream through the template's filters, the bundles bring each intent to its target, with its key", async () => {
  await mapped(await streamed());
  const rows = await intents();
  assert.ok(
    rows.every(({ isDelivered }) => isDelivered),
    JSON.stringify(rows),
  );
  const notified = await readTopic(kafka.directBrokers, "user-notifications");
  const told = await sqs.drain(queueUrl);
  const lines = [
    ...notified.map(({ key, value }) => `user-notifications ${key} ${value}`).sort(),
    ...payroll.requests.map(({ url, headers, body }) => `${url} ${headers["partition-key"]} ${body}`).sort(),
    ...told.map(({ Attributes, Body }) => `callers.fifo ${Attributes?.MessageGroupId} ${Body}`),
  ];
  assert.equal(lines.map(withoutId).join("\n"), sections[1]?.trim());
  for (const record of notified) assert.equal(headerText(record, "event-id"), keyIn(record.value!));
  for (const { headers, body } of payroll.requests) assert.equal(headers["idempotency-key"], keyIn(body));
  for (const { Attributes, Body } of told) assert.equal(Attributes?.MessageDeduplicationId, keyIn(Body!));
  const sent = [...notified.map(({ value }) => value!), ...payroll.requests.map(({ body }) => body)];
  const keys = [...sent, ...told.map(({ Body }) => Body!)].map(keyIn);
  assert.deepEqual(
    keys.sort(),
    rows.map(({ id }) => id),
  );
});

test("D4 D5 D6: told of everything again, they send nothing twice; a failing target waits for its retry, what cannot be sent is a dead letter", async () => {
  const [broken, unreadable] = await outbox.write([
    { type: "SyncToPayroll", payload: { entryId: "entry-8", userId: "broken", hours: 1 } },
    { type: "SyncToPayroll", payload: "{no JSON" },
  ]);
  payroll.breaks("broken");
  const before = payroll.requests.length;
  await mapped(await streamed());
  assert.equal(payroll.requests.length, before + 1, "only the one that fails");
  assert.deepEqual(await sqs.drain(queueUrl), []);
  const row = (await intents()).find(({ id }) => id === broken);
  assert.deepEqual([row?.isDelivered, row?.attempts], [false, 1]);
  const dead = await outbox.deadLetterOf(unreadable!);
  assert.match(dead?.lastError ?? "", /could not be turned into a message/);
  for (const handler of handlers.values())
    assert.deepEqual(await handler({ "outbox-relay": "sweep" }, context), { batchItemFailures: [] });
  assert.equal(payroll.requests.length, before + 1, "nothing is due yet");
});

/** Names of the tables in the places of what CloudFormation would fill in. */
function named(resource: unknown): string {
  const id = (which: "outbox" | "deadLetters") =>
    stack.getLogicalId(stack.tables[which].node.defaultChild as Parameters<typeof stack.getLogicalId>[0]);
  const names = new Map([
    [id("outbox"), "outbox"],
    [id("deadLetters"), "outbox-dead-letters"],
  ]);
  const { "Fn::GetAtt": attribute, "Fn::Join": join } = resource as {
    "Fn::GetAtt"?: [string, string];
    "Fn::Join"?: [string, unknown[]];
  };
  if (attribute?.[1] === "Arn") return names.get(attribute[0]) ?? attribute[0];
  if (attribute !== undefined) return attribute.join(".");
  return (join?.[1] ?? []).map((part) => (typeof part === "string" ? part : named(part))).join("");
}

test("D10: the rights that the stack gives to a function are those that it used, and no more", () => {
  type Statement = { readonly Action: string | string[]; readonly Resource: unknown };
  const given = Object.values(template.findResources("AWS::IAM::Policy") as Record<string, Resource>)
    .flatMap(({ Properties }) => (Properties.PolicyDocument as { Statement: Statement[] }).Statement)
    .flatMap(({ Action, Resource }) =>
      [Action].flat().flatMap((action) => [Resource].flat().map((resource) => `${action} ${named(resource)}`)),
    )
    .filter((right) => /^dynamodb:\S+ outbox/.test(right));
  assert.deepEqual([...new Set(given)].sort(), [...calls.rights].sort());
});

/** One relay per kind of broker that the example has none of; nobody listens there. */
async function otherRelays(): Promise<readonly BundledRelay[]> {
  const folder = mkdtempSync(join(outdir, "others-"));
  for (const name of ["relays", "lambdas"]) mkdirSync(join(folder, name));
  const source = (file: string) => JSON.stringify(fileURLToPath(new URL(`../../src/${file}`, import.meta.url)));
  for (const [name, url] of Object.entries(OTHERS)) {
    const relay = `{ type: "To-${name}", target: { url: "${url}" }, translate: () => ({ body: {} }) }`;
    writeFileSync(join(folder, `relays/${name}-relay.ts`), `export default ${relay};`);
    const entry = `import { intentHandler } from ${source("lambda.ts")};\nimport relay from "../relays/${name}-relay.ts";\n`;
    writeFileSync(join(folder, `lambdas/${name}.ts`), `${entry}export const handler = intentHandler(relay);`);
  }
  return await bundled(await relayEntries(folder), join(folder, "bundles"));
}

const OTHERS = {
  bullmq: "bullmq+redis://127.0.0.1:1/0?queue=jobs",
  nats: "nats://127.0.0.1:1",
  rabbitmq: "amqp://127.0.0.1:1?exchange=desk",
  redis: "redis://127.0.0.1:1",
};

test("D2: the client of every other kind of broker comes along too: what is told is that nobody listens", async (t) => {
  const others = await otherRelays();
  await Promise.all(
    others.map(async ({ bytes, code, intentType: type, name }) => {
      t.diagnostic(`${name}: ${(bytes / 1e6).toFixed(2)} MB`);
      assert.ok(bytes < BUNDLE_BYTES_MAX, `${name} has ${bytes} bytes`);
      const file = pathToFileURL(join(code, "index.mjs")).href;
      const { handler } = (await import(file)) as { readonly handler: IntentHandler };
      const [id = ""] = await outbox.write({ type, payload: {} });
      try {
        const image = { id: { S: id }, intent: { M: { type: { S: type } } } };
        const change = { Keys: { id: { S: id } }, NewImage: image, SequenceNumber: "1" };
        const Records = [{ eventName: "INSERT", dynamodb: change }];
        assert.deepEqual(await handler({ Records }, context), { batchItemFailures: [] });
      } finally {
        await handler.close();
      }
      assert.match((await outbox.read([id])).get(id)?.lastError ?? "", /ECONNREFUSED|connect/i, name);
    }),
  );
});

test("D2: the same relays run without AWS, in a process that reads the stream itself", async () => {
  const [fine] = await outbox.write({
    type: "SyncToPayroll",
    payload: { entryId: "entry-9", userId: "dee", hours: 2 },
  });
  await using runner = startService(["dynamodb", "run"], { ...env, PORT: String(await freePort()) }, undefined, FOLDER);
  await until("it is delivered", async () => (await intents()).find(({ id }) => id === fine)?.isDelivered === true);
  const sent = payroll.requests.filter(({ body }) => keyIn(body) === fine);
  assert.deepEqual(
    sent.map(({ headers }) => headers["idempotency-key"]),
    [fine],
  );
  runner.kill("SIGTERM");
  assert.equal((await runner.ended).code, 0);
});

test("D1: no file but a relay knows a broker, a topic or an address", () => {
  const files = readdirSync(FOLDER, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"));
  const isRelay = (file: string) => file.startsWith("relays/");
  assert.equal(files.filter(isRelay).length, 3);
  const names = /kafka|sqs|https?:|queue|topic:|user-notifications|payroll_url|callers|\/hours/i;
  for (const file of files) assert.equal(names.test(textOf(file)), isRelay(file), file);
  for (const file of files.filter(isRelay)) assert.equal(textOf(file).match(/\btype: "/g)?.length, 1, file);
});
