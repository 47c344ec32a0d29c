import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { App, Stack } from "aws-cdk-lib";
import { Annotations, Match, Template } from "aws-cdk-lib/assertions";
import { Vpc } from "aws-cdk-lib/aws-ec2";
import { type BundledRelay, bundled } from "../../deploy/cdk/bundle.ts";
import { OutboxRelayStack } from "../../deploy/cdk/outbox-relay-stack.ts";
import { type RelayEntry, relayEntries } from "../../deploy/cdk/relay-entries.ts";
import { type FilterPattern, matchesFilter, streamFilter } from "../../src/lambda/filter-pattern.ts";
import type { StreamRecord } from "../../src/lambda/lambda-events.ts";

const application = resolve(import.meta.dirname, "../../examples/serverless");
const settings = readFileSync(resolve(import.meta.dirname, "../../deploy/cdk/cdk.json"), "utf8");
const { context } = JSON.parse(settings) as { readonly context: Readonly<Record<string, unknown>> };
const TYPES = ["InformCallerOfRejection", "NotifyUserOfApproval", "SyncToPayroll"];
const DEPLOYED = {
  NOTIFICATIONS_BROKERS: "kafka.example:9092",
  PAYROLL_URL: "https://payroll.example",
  CALLERS_QUEUE: "eu-central-1/callers.fifo",
};

interface Resource {
  readonly Type: string;
  readonly Properties: Readonly<Record<string, unknown>>;
  readonly DeletionPolicy?: string;
  readonly UpdateReplacePolicy?: string;
}

interface Statement {
  readonly Effect: string;
  readonly Action: string | readonly string[];
  readonly Resource: unknown;
}

let outdir: string;
let relays: readonly RelayEntry[];
let made: readonly BundledRelay[];
let stack: OutboxRelayStack;
let template: Template;

before(async () => {
  Object.assign(process.env, DEPLOYED);
  outdir = mkdtempSync(join(tmpdir(), "outbox-relay-cdk-"));
  relays = await relayEntries(application);
  made = await bundled(relays, join(outdir, "bundles"));
  stack = new OutboxRelayStack(new App({ outdir, context }), "Outbox", {
    relays: made,
    alertEmail: "people@example.com",
  });
  template = Template.fromStack(stack);
});
after(() => rmSync(outdir, { recursive: true, force: true }));

const assertHas = (type: string, properties: object) => template.hasResourceProperties(type, properties);
const assertCount = (type: string, count: number) => template.resourceCountIs(type, count);
const listOf = <Value>(value: Value | readonly Value[]) => [value].flat() as Value[];
const resources = (type: string) => Object.entries(template.findResources(type) as Record<string, Resource>);
const idOf = (element: { readonly defaultChild?: unknown } | undefined) =>
  stack.getLogicalId(element?.defaultChild as Parameters<typeof stack.getLogicalId>[0]);
const tableId = (which: "outbox" | "deadLetters") => idOf(stack.tables[which].node);
const functionId = (type: string) => idOf(stack.relays.get(type)?.function.node);

function statementsOf(roleId: string): readonly Statement[] {
  const isOf = ({ Properties }: Resource) => JSON.stringify(Properties.Roles) === JSON.stringify([{ Ref: roleId }]);
  return resources("AWS::IAM::Policy")
    .filter(([, policy]) => isOf(policy))
    .flatMap(([, { Properties }]) => (Properties.PolicyDocument as { Statement: Statement[] }).Statement);
}

test("D2 D10: one function per relay, on arm64 and the newest Node, with its tables and its own variables only", () => {
  assertCount("AWS::Lambda::Function", TYPES.length);
  assert.deepEqual(
    relays.map(({ intentType }) => intentType),
    TYPES,
  );
  const own = ["CALLERS_QUEUE", "NOTIFICATIONS_BROKERS", "PAYROLL_URL"] as const;
  for (const [index, type] of TYPES.entries()) {
    assertHas("AWS::Lambda::Function", {
      Description: `Relays ${type}`,
      Runtime: "nodejs24.x",
      Architectures: ["arm64"],
      Handler: "index.handler",
      LoggingConfig: { LogFormat: "Text" },
      Environment: {
        Variables: {
          [own[index]!]: DEPLOYED[own[index]!],
          DYNAMODB_OUTBOX: { Ref: tableId("outbox") },
          DYNAMODB_DEAD_LETTERS: { Ref: tableId("deadLetters") },
        },
      },
    });
    const [, made] = resources("AWS::Lambda::Function").find(([id]) => id === functionId(type))!;
    const { Variables } = made.Properties.Environment as { Variables: object };
    assert.deepEqual(Object.keys(Variables).sort(), ["DYNAMODB_DEAD_LETTERS", "DYNAMODB_OUTBOX", own[index]].sort());
  }
});

test("D2: each function is fed by the outbox's stream from its beginning, with partial answers, and refused batches are kept", () => {
  assertCount("AWS::Lambda::EventSourceMapping", TYPES.length);
  for (const type of TYPES) {
    assertHas("AWS::Lambda::EventSourceMapping", {
      FunctionName: { Ref: functionId(type) },
      EventSourceArn: { "Fn::GetAtt": [tableId("outbox"), "StreamArn"] },
      FilterCriteria: { Filters: [{ Pattern: JSON.stringify(streamFilter(type)) }] },
      FunctionResponseTypes: ["ReportBatchItemFailures"],
      BisectBatchOnFunctionError: true,
      StartingPosition: "TRIM_HORIZON",
      ParallelizationFactor: 2,
      MaximumRecordAgeInSeconds: 6 * 3600,
      MaximumRetryAttempts: Match.absent(),
      DestinationConfig: {
        OnFailure: { Destination: { "Fn::GetAtt": [idOf(stack.relays.get(type)?.refused.node), "Arn"] } },
      },
    });
  }
});

/** A new intent as the stream tells of it. */
function record(type: unknown, eventName = "INSERT"): StreamRecord {
  const image = { id: { S: "1" }, intent: { M: { ...(type === null ? {} : { type }), payload: { S: "{}" } } } };
  const dynamodb = eventName === "REMOVE" ? { OldImage: image } : { NewImage: image };
  return { eventName, eventSource: "aws:dynamodb", dynamodb: { Keys: { id: { S: "1" } }, ...dynamodb } };
}

function filtersOf(resource: Resource): readonly FilterPattern[] {
  const parameters = (resource.Properties.SourceParameters ?? resource.Properties) as Resource["Properties"];
  const { Filters } = parameters.FilterCriteria as { Filters: readonly { Pattern: string }[] };
  return Filters.map(({ Pattern }) => JSON.parse(Pattern) as FilterPattern);
}

const matches = (filters: readonly FilterPattern[], of: StreamRecord) => filters.some((it) => matchesFilter(it, of));

test("D2 D6: by the template's filters every new intent reaches exactly one function, or is told to have none", () => {
  const functions = new Map(
    resources("AWS::Lambda::EventSourceMapping").map(([, it]) => [
      (it.Properties.FunctionName as { Ref: string }).Ref,
      filtersOf(it),
    ]),
  );
  const [, pipe] = resources("AWS::Pipes::Pipe").find(([id]) => id.startsWith("MismatchAlert"))!;
  const takers = (of: StreamRecord) => [
    ...TYPES.filter((type) => matches(functions.get(functionId(type))!, of)),
    ...(matches(filtersOf(pipe), of) ? ["nobody"] : []),
  ];
  for (const type of TYPES) {
    assert.deepEqual(takers(record({ S: type })), [type]);
    for (const change of ["MODIFY", "REMOVE"]) assert.deepEqual(takers(record({ S: type }, change)), [], change);
    for (const near of [`${type}s`, type.toLowerCase(), ` ${type}`, ""])
      assert.deepEqual(takers(record({ S: near })), ["nobody"], near);
  }
  for (const strange of [null, { N: "1" }, { L: [{ S: TYPES[0] }] }])
    assert.deepEqual(takers(record(strange)), ["nobody"]);
});

test("D5: every function sweeps once a minute what is due", () => {
  for (const type of TYPES) {
    const Arn = { "Fn::GetAtt": [functionId(type), "Arn"] };
    assertHas("AWS::Events::Rule", {
      ScheduleExpression: "rate(1 minute)",
      State: "ENABLED",
      Targets: [
        Match.objectLike({ Arn, Input: JSON.stringify({ "outbox-relay": "sweep" }), RetryPolicy: Match.absent() }),
      ],
    });
    // The rule hands over at once; it is Lambda that would try again, for six hours.
    assertHas("AWS::Lambda::EventInvokeConfig", {
      FunctionName: { Ref: functionId(type) },
      Qualifier: "$LATEST",
      MaximumRetryAttempts: 0,
      MaximumEventAgeInSeconds: 60,
    });
    assertHas("AWS::Lambda::Permission", {
      FunctionName: Arn,
      Principal: "events.amazonaws.com",
      SourceArn: Match.anyValue(),
    });
  }
});

test("D3: both tables are encrypted, kept, protected and recoverable, with a stream and the indexes of the store", () => {
  assertCount("AWS::DynamoDB::Table", 2);
  const kept = {
    BillingMode: "PAY_PER_REQUEST",
    KeySchema: [{ AttributeName: "id", KeyType: "HASH" }],
    SSESpecification: { SSEEnabled: true },
    PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true },
    DeletionProtectionEnabled: true,
    StreamSpecification: { StreamViewType: "NEW_AND_OLD_IMAGES" },
  };
  const index = (IndexName: string, hash: string, range: string) => ({
    IndexName,
    KeySchema: [
      { AttributeName: hash, KeyType: "HASH" },
      { AttributeName: range, KeyType: "RANGE" },
    ],
    Projection: { ProjectionType: "KEYS_ONLY" },
  });
  assertHas("AWS::DynamoDB::Table", {
    ...kept,
    GlobalSecondaryIndexes: [index("retries", "retry_type", "retry_at")],
    TimeToLiveSpecification: { AttributeName: "expires_at", Enabled: true },
  });
  assertHas("AWS::DynamoDB::Table", {
    ...kept,
    GlobalSecondaryIndexes: [index("by-type", "intent_type", "dead_at")],
    TimeToLiveSpecification: Match.absent(),
  });
  for (const type of ["AWS::DynamoDB::Table", "AWS::SQS::Queue", "AWS::Logs::LogGroup"]) {
    for (const [id, { DeletionPolicy, UpdateReplacePolicy }] of resources(type))
      assert.deepEqual([DeletionPolicy, UpdateReplacePolicy], ["Retain", "Retain"], id);
  }
  for (const [id, { Properties }] of resources("AWS::SQS::Queue"))
    assert.equal(Properties.SqsManagedSseEnabled, true, id);
});

test("D10: no function may do more than it has to: no star, its tables and indexes, its own log, queue and target", () => {
  const outbox = { "Fn::GetAtt": [tableId("outbox"), "Arn"] };
  const deadLetters = { "Fn::GetAtt": [tableId("deadLetters"), "Arn"] };
  const allowed = [
    outbox,
    deadLetters,
    { "Fn::GetAtt": [tableId("outbox"), "StreamArn"] },
    { "Fn::Join": ["", [outbox, "/index/retries"]] },
    { "Fn::Join": ["", [deadLetters, "/index/by-type"]] },
  ].map((it) => JSON.stringify(it));
  for (const type of TYPES) {
    const relay = stack.relays.get(type)!;
    const statements = statementsOf(idOf(relay.function.role?.node));
    assert.ok(statements.length > 0, type);
    for (const { Action, Effect, Resource } of statements) {
      assert.equal(Effect, "Allow");
      for (const action of listOf(Action)) assert.doesNotMatch(action, /\*/);
      const named = listOf(Resource as object).map((it) => JSON.stringify(it));
      assert.ok(!named.includes('"*"'), `${type} ${JSON.stringify(Action)}`);
      if (listOf(Action).every((it) => it.startsWith("dynamodb:")))
        assert.deepEqual(
          named.filter((it) => !allowed.includes(it)),
          [],
          type,
        );
    }
    const actionsOn = (resource: object) =>
      statements
        .filter((it) => listOf(it.Resource as object).some((one) => JSON.stringify(one) === JSON.stringify(resource)))
        .flatMap(({ Action }) => listOf(Action))
        .sort();
    assert.deepEqual(actionsOn(deadLetters), ["dynamodb:PutItem"]);
    assert.deepEqual(actionsOn(outbox), ["dynamodb:BatchGetItem", "dynamodb:DeleteItem", "dynamodb:UpdateItem"]);
    const mayUseCallers = statements.some((it) => JSON.stringify(it.Resource).includes(":callers.fifo"));
    assert.equal(mayUseCallers, type === "InformCallerOfRejection");
  }
  for (const [id, { Properties }] of resources("AWS::IAM::Role"))
    assert.equal(Properties.ManagedPolicyArns, undefined, id);
});

const MINUTES_15 = { EvaluationPeriods: 3, Period: 300 };

test("D10: from day one alarms tell one topic of dead letters, refused batches, lateness, errors and silence, per intent type", () => {
  const topic = { Ref: idOf(stack.alerts.node) };
  for (const type of TYPES) {
    const ofFunction = [{ Name: "FunctionName", Value: { Ref: functionId(type) } }];
    const queue = { "Fn::GetAtt": [idOf(stack.relays.get(type)?.refused.node), "QueueName"] };
    const isAtLeast = { ComparisonOperator: "GreaterThanOrEqualToThreshold", TreatMissingData: "notBreaching" };
    const alarms = [
      {
        ...isAtLeast,
        Namespace: "OutboxRelay",
        MetricName: "DeadLetters",
        Dimensions: [{ Name: "intentType", Value: type }],
        Statistic: "Maximum",
        Threshold: 1,
      },
      {
        ...isAtLeast,
        Namespace: "AWS/SQS",
        MetricName: "ApproximateNumberOfMessagesVisible",
        Dimensions: [{ Name: "QueueName", Value: queue }],
        Threshold: 1,
      },
      { ...isAtLeast, MetricName: "IteratorAge", Statistic: "Maximum", Dimensions: ofFunction, Threshold: 600_000 },
      { ...isAtLeast, MetricName: "Errors", Statistic: "Sum", Dimensions: ofFunction, Threshold: 1 },
      { ...isAtLeast, ...MINUTES_15, MetricName: "Throttles", Dimensions: ofFunction, Threshold: 1 },
      {
        ...MINUTES_15,
        MetricName: "Invocations",
        Dimensions: ofFunction,
        Threshold: 1,
        ComparisonOperator: "LessThanThreshold",
        TreatMissingData: "missing",
        InsufficientDataActions: [topic],
      },
    ];
    for (const alarm of alarms) assertHas("AWS::CloudWatch::Alarm", { ...alarm, AlarmActions: [topic] });
  }
  assertCount("AWS::CloudWatch::Alarm", 6 * TYPES.length + 1);
  assertHas("AWS::SNS::Subscription", { Protocol: "email", Endpoint: "people@example.com" });
});

test("D10: the topic lets alarms and rules in, and nobody without encryption", () => {
  assertHas("AWS::SNS::TopicPolicy", {
    PolicyDocument: {
      Statement: Match.arrayWith([
        Match.objectLike({ Effect: "Deny", Condition: { Bool: { "aws:SecureTransport": "false" } } }),
        Match.objectLike({
          Effect: "Allow",
          Action: "sns:Publish",
          Principal: { Service: ["cloudwatch.amazonaws.com", "events.amazonaws.com"] },
          Condition: { StringEquals: { "aws:SourceAccount": { Ref: "AWS::AccountId" } } },
        }),
      ]),
    },
  });
  for (const [id, { Properties }] of resources("AWS::SNS::TopicPolicy")) {
    const { Statement } = Properties.PolicyDocument as { Statement: { Effect: string; Condition?: object }[] };
    for (const { Condition, Effect } of Statement) assert.ok(Condition, `${id}: ${Effect} without a condition`);
  }
});

test("D10: an EventBridge rule on the dead-letter table alerts the topic, and what it cannot tell raises an alarm", () => {
  const table = tableId("deadLetters");
  const resource = { "Fn::GetAtt": [table, "Arn"] };
  assertHas("AWS::Pipes::Pipe", {
    Source: { "Fn::GetAtt": [table, "StreamArn"] },
    SourceParameters: {
      FilterCriteria: { Filters: [{ Pattern: JSON.stringify({ eventName: ["INSERT"] }) }] },
      DynamoDBStreamParameters: { StartingPosition: "TRIM_HORIZON", DeadLetterConfig: { Arn: Match.anyValue() } },
    },
    TargetParameters: {
      EventBridgeEventBusParameters: {
        Source: "outbox-relay",
        DetailType: "IntentDeadLettered",
        Resources: [resource],
      },
      InputTemplate: Match.serializedJson({
        id: "<$.dynamodb.Keys.id.S>",
        intentType: "<$.dynamodb.NewImage.intent.M.type.S>",
        attempts: "<$.dynamodb.NewImage.attempt_count.N>",
        createdAt: "<$.dynamodb.NewImage.created_at.S>",
      }),
    },
  });
  assertHas("AWS::Events::Rule", {
    EventBusName: "default",
    EventPattern: { source: ["outbox-relay"], "detail-type": ["IntentDeadLettered"], resources: [resource] },
    State: "ENABLED",
    Targets: [
      Match.objectLike({
        Arn: { Ref: idOf(stack.alerts.node) },
        DeadLetterConfig: { Arn: Match.anyValue() },
        InputTransformer: { InputTemplate: Match.stringLikeRegexp("dead-letter table. It is not tried again") },
      }),
    ],
  });
  assertHas("AWS::CloudWatch::Alarm", {
    AlarmDescription: Match.stringLikeRegexp("could not be sent"),
    MetricName: "ApproximateNumberOfMessagesVisible",
    Threshold: 1,
  });
});

test("D8 D10: the function of an encrypted target may use its key, and no other function may", () => {
  const key = "arn:aws:kms:eu-central-1:123456789012:key/1";
  const app = new App({ outdir: join(outdir, "encrypted"), context });
  const encrypted = new OutboxRelayStack(app, "Encrypted", { relays: made, targetKeys: { [TYPES[0]!]: key } });
  const policies = JSON.stringify(Template.fromStack(encrypted).findResources("AWS::IAM::Policy"));
  assert.deepEqual(policies.match(/"kms:\w+"|"arn:aws:kms[^"]+"/g), [
    '"kms:Decrypt"',
    '"kms:GenerateDataKey"',
    `"${key}"`,
  ]);
  assert.throws(
    () => new OutboxRelayStack(app, "Unknown", { relays: made, targetKeys: { SyncToPayrol: key } }),
    /targetKeys names SyncToPayrol, which no relay takes/,
  );
});

test("D2: the stack says what the application needs, and warns of more readers than a stream has room for", () => {
  assert.deepEqual(Object.keys(template.findOutputs("*")).sort(), ["AlertTopic", "DeadLetterTable", "OutboxTable"]);
  Annotations.fromStack(stack).hasWarning("*", Match.stringLikeRegexp("4 readers share one stream"));
});

test("D2: inside of a network a function also gets what it needs to be there, and nothing else", () => {
  const app = new App({ outdir: join(outdir, "inside"), context });
  const place = { vpcId: "vpc-1", availabilityZones: ["eu-central-1a"], privateSubnetIds: ["subnet-1"] };
  const vpc = Vpc.fromVpcAttributes(new Stack(app, "Network"), "Vpc", place);
  const inside = Template.fromStack(new OutboxRelayStack(app, "Inside", { relays: made.slice(0, 1), vpc }));
  const networks = Object.values(inside.findResources("AWS::Lambda::Function") as Record<string, Resource>);
  assert.deepEqual(
    networks.map(({ Properties }) => Object.keys(Properties.VpcConfig as object).sort()),
    [["SecurityGroupIds", "SubnetIds"]],
  );
  const managed = Object.values(inside.findResources("AWS::IAM::Role") as Record<string, Resource>)
    .flatMap(({ Properties }) => Properties.ManagedPolicyArns ?? [])
    .map((arn) => JSON.stringify(arn));
  assert.equal(managed.length, 1);
  assert.match(managed[0]!, /AWSLambdaVPCAccessExecutionRole/);
});
