import { Duration, RemovalPolicy, Stack } from "aws-cdk-lib";
import type { IVpc } from "aws-cdk-lib/aws-ec2";
import { Rule, RuleTargetInput, Schedule } from "aws-cdk-lib/aws-events";
import { LambdaFunction } from "aws-cdk-lib/aws-events-targets";
import { ManagedPolicy, PolicyStatement, Role, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import {
  Architecture,
  Code,
  EventSourceMapping,
  Function as LambdaOfAws,
  LoggingFormat,
  Runtime,
  StartingPosition,
} from "aws-cdk-lib/aws-lambda";
import { SqsDlq } from "aws-cdk-lib/aws-lambda-event-sources";
import { LogGroup, RetentionDays } from "aws-cdk-lib/aws-logs";
import { Queue, QueueEncryption } from "aws-cdk-lib/aws-sqs";
import { Construct } from "constructs";
import type { BundledRelay } from "./bundle.ts";
import {
  DEAD_LETTERS_INDEX,
  type IntentEvent,
  RETRIES_INDEX,
  STREAM_RIGHTS,
  streamFilter,
  TABLE_VARIABLES,
} from "./outbox-relay.ts";
import type { OutboxTables } from "./outbox-tables.ts";

export interface RelayFunctionProps {
  readonly relay: BundledRelay;
  readonly tables: OutboxTables;
  /** Where its target can only be reached from inside of a network. */
  readonly vpc?: IVpc | undefined;
  /** The KMS key of a target that is encrypted with a key of yours. */
  readonly targetKeyArn?: string | undefined;
}

const SWEEP: IntentEvent = { "outbox-relay": "sweep" };

/** A publish waits 5 s at most, and a batch is published together; the rest is for a throttled table. */
const TIMEOUT = Duration.seconds(60);

/** Everything that one intent type needs: its function, what starts it, and where the stream's refused batches go. */
export class RelayFunction extends Construct {
  readonly intentType: string;
  readonly function: LambdaOfAws;
  /** Places in the stream that were given up. The items themselves are still in the table. */
  readonly refused: Queue;

  constructor(scope: Construct, id: string, { relay, tables, targetKeyArn, vpc }: RelayFunctionProps) {
    super(scope, id);
    this.intentType = relay.intentType;
    const logGroup = new LogGroup(this, "Log", {
      retention: RetentionDays.ONE_MONTH,
      removalPolicy: RemovalPolicy.RETAIN,
    });
    const role = this.#roleOf(vpc);
    logGroup.grantWrite(role);
    this.function = new LambdaOfAws(this, "Function", {
      description: `Relays ${relay.intentType}`,
      runtime: Runtime.NODEJS_24_X,
      architecture: Architecture.ARM_64,
      code: Code.fromAsset(relay.code),
      handler: "index.handler",
      memorySize: 512,
      timeout: TIMEOUT,
      environment: {
        ...relay.environment,
        [TABLE_VARIABLES.outbox]: tables.outbox.tableName,
        [TABLE_VARIABLES.deadLetters]: tables.deadLetters.tableName,
      },
      role,
      logGroup,
      // A line of the log is the metric of dead letters: it has to stand there as it was written.
      loggingFormat: LoggingFormat.TEXT,
      // Of the sweeps alone, since the stream has its own rules: the next one comes in a minute anyway.
      retryAttempts: 0,
      maxEventAge: Duration.minutes(1),
      ...(vpc === undefined ? {} : { vpc }),
    });
    this.refused = new Queue(this, "Refused", {
      encryption: QueueEncryption.SQS_MANAGED,
      enforceSSL: true,
      retentionPeriod: Duration.days(14),
      removalPolicy: RemovalPolicy.RETAIN,
    });
    this.#mayRelay(relay, tables);
    if (targetKeyArn !== undefined) this.#mayEncrypt(targetKeyArn);
    this.#fedByStream(tables);
    this.#sweptEveryMinute();
  }

  /** Not the one that Lambda makes by itself, which may write every log of the account. */
  #roleOf(vpc: IVpc | undefined): Role {
    const managed = vpc === undefined ? [] : ["service-role/AWSLambdaVPCAccessExecutionRole"];
    return new Role(this, "Role", {
      assumedBy: new ServicePrincipal("lambda.amazonaws.com"),
      managedPolicies: managed.map((name) => ManagedPolicy.fromAwsManagedPolicyName(name)),
    });
  }

  /** Its own tables and, where that is a right of AWS, its own target. No action with a star, no other table. */
  #mayRelay({ queue }: BundledRelay, { outbox, deadLetters }: OutboxTables): void {
    const allow = (actions: readonly string[], ...resources: string[]) =>
      this.function.addToRolePolicy(new PolicyStatement({ actions: [...actions], resources }));
    allow(["dynamodb:BatchGetItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem"], outbox.tableArn);
    allow(["dynamodb:PutItem"], deadLetters.tableArn);
    allow(
      ["dynamodb:Query"],
      `${outbox.tableArn}/index/${RETRIES_INDEX.name}`,
      `${deadLetters.tableArn}/index/${DEAD_LETTERS_INDEX.name}`,
    );
    allow(STREAM_RIGHTS, outbox.tableStreamArn!);
    if (queue === null) return;
    const { account, name: resourceName, region } = queue;
    const place = account === null ? { region } : { region, account };
    allow(
      ["sqs:SendMessage", "sqs:GetQueueUrl"],
      Stack.of(this).formatArn({ service: "sqs", resource: resourceName, ...place }),
    );
  }

  /** Who sends to an encrypted queue makes a data key of its key, and reads it again for the next messages. */
  #mayEncrypt(keyArn: string): void {
    const actions = ["kms:GenerateDataKey", "kms:Decrypt"];
    this.function.addToRolePolicy(new PolicyStatement({ actions, resources: [keyArn] }));
  }

  #fedByStream({ outbox }: OutboxTables): void {
    const mapping = new EventSourceMapping(this, "Stream", {
      target: this.function,
      eventSourceArn: outbox.tableStreamArn!,
      filters: [{ pattern: JSON.stringify(streamFilter(this.intentType)) }],
      // Nothing that was written before the function was there is passed over.
      startingPosition: StartingPosition.TRIM_HORIZON,
      batchSize: 100,
      parallelizationFactor: 2,
      reportBatchItemFailures: true,
      bisectBatchOnError: true,
      // A stream keeps 24 hours. What is given up after six can still be looked up there.
      maxRecordAge: Duration.hours(6),
      onFailure: new SqsDlq(this.refused),
    });
    const policy = this.function.role?.node.tryFindChild("DefaultPolicy");
    // Lambda tries the rights when the mapping is made.
    if (policy !== undefined) mapping.node.addDependency(policy);
  }

  #sweptEveryMinute(): void {
    new Rule(this, "Sweep", {
      description: `Relays what is due again of ${this.intentType}`,
      schedule: Schedule.rate(Duration.minutes(1)),
      targets: [new LambdaFunction(this.function, { event: RuleTargetInput.fromObject(SWEEP) })],
    });
  }
}
