import { Annotations, CfnOutput, Duration, RemovalPolicy, Stack, type StackProps } from "aws-cdk-lib";
import type { IVpc } from "aws-cdk-lib/aws-ec2";
import { PolicyStatement, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import { Topic } from "aws-cdk-lib/aws-sns";
import { EmailSubscription } from "aws-cdk-lib/aws-sns-subscriptions";
import { Queue, QueueEncryption } from "aws-cdk-lib/aws-sqs";
import type { Construct } from "constructs";
import { queueAlarm, RelayAlarms } from "./alarms.ts";
import type { BundledRelay } from "./bundle.ts";
import type { FilterPattern } from "./outbox-relay.ts";
import { OutboxTables } from "./outbox-tables.ts";
import { RelayFunction } from "./relay-function.ts";
import { StreamAlert } from "./stream-alert.ts";

export interface OutboxRelayStackProps extends StackProps {
  readonly relays: readonly BundledRelay[];
  /** Gets every alarm and every dead letter. More can subscribe to `alerts`. */
  readonly alertEmail?: string | undefined;
  /** Where a target can only be reached from inside of a network. */
  readonly vpc?: IVpc | undefined;
  /** By intent type: the ARN of the KMS key with which its target, such as a queue, is encrypted. */
  readonly targetKeys?: Readonly<Record<string, string>> | undefined;
}

/** How many readers DynamoDB promises to serve from one stream without throttling them. */
const STREAM_READERS = 2;

/** An outbox in DynamoDB, one function for each intent type, and everything that tells when one of them fails. */
export class OutboxRelayStack extends Stack {
  readonly tables: OutboxTables;
  readonly alerts: Topic;
  /** By intent type, for rights at a target: `topic.grantPublish(stack.relays.get("...")!.function)`. */
  readonly relays: ReadonlyMap<string, RelayFunction>;

  constructor(scope: Construct, id: string, props: OutboxRelayStackProps) {
    const { alertEmail, relays, targetKeys = {}, vpc, ...stackProps } = props;
    super(scope, id, stackProps);
    requireTypes(Object.keys(targetKeys), relays);
    this.tables = new OutboxTables(this, "Tables");
    this.alerts = alertTopic(this);
    if (alertEmail !== undefined) this.alerts.addSubscription(new EmailSubscription(alertEmail));
    this.relays = new Map(
      relays.map((relay) => [relay.intentType, this.#relay(relay, vpc, targetKeys[relay.intentType])]),
    );
    this.#tell(relays.map(({ intentType }) => intentType));
    const readers = relays.length + 1;
    if (readers > STREAM_READERS) this.#warnOf(readers);
    this.#output();
  }

  #relay(relay: BundledRelay, vpc: IVpc | undefined, targetKeyArn: string | undefined): RelayFunction {
    const id = relay.name.replace(/(?:^|[-_]+)([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
    const made = new RelayFunction(this, id, { relay, tables: this.tables, vpc, targetKeyArn });
    new RelayAlarms(made, "Alarms", made, this.alerts);
    return made;
  }

  /** What no function of a relay can tell: that a dead letter lies there, and that an intent has no relay at all. */
  #tell(types: readonly string[]): void {
    const { tables, alerts: topic } = this;
    const untold = new Queue(this, "Untold", {
      encryption: QueueEncryption.SQS_MANAGED,
      enforceSSL: true,
      retentionPeriod: Duration.days(14),
      removalPolicy: RemovalPolicy.RETAIN,
    });
    queueAlarm(this, "UntoldAlarm", untold, topic, "An alert about intents could not be sent: look into this queue.");
    new StreamAlert(this, "DeadLetterAlert", {
      table: tables.deadLetters,
      filters: [{ eventName: ["INSERT"] }],
      event: "IntentDeadLettered",
      text: "was given up and is in the dead-letter table. It is not tried again by itself.",
      topic,
      untold,
    });
    new StreamAlert(this, "MismatchAlert", {
      table: tables.outbox,
      filters: unknownTypes(types),
      event: "RelayMismatch",
      text: "is an intent that no relay takes. It stays in the outbox until one does.",
      topic,
      untold,
    });
  }

  #warnOf(readers: number): void {
    Annotations.of(this).addWarningV2(
      "outbox-relay:readers",
      `${readers} readers share one stream, and DynamoDB promises room for ${STREAM_READERS}. More may be slowed down ` +
        "under load, which the alarms named Late tell of: give intent types that are busy an outbox of their own.",
    );
  }

  #output(): void {
    const outputs = {
      OutboxTable: [this.tables.outbox.tableName, "The application writes its intents here"],
      DeadLetterTable: [this.tables.deadLetters.tableName, "Intents that were given up"],
      AlertTopic: [this.alerts.topicArn, "Subscribe whoever has to know"],
    } as const;
    for (const [name, [value, description]] of Object.entries(outputs))
      new CfnOutput(this, name, { value, description });
  }
}

/** Every new item that none of the relays is told of. */
function unknownTypes(types: readonly string[]): readonly FilterPattern[] {
  const filter = (type: FilterPattern): FilterPattern => ({
    eventName: ["INSERT"],
    dynamodb: { NewImage: { intent: { M: { type } } } },
  });
  return [filter({ S: [{ "anything-but": types }] }), filter({ S: [{ exists: false }] })];
}

function requireTypes(types: readonly string[], relays: readonly BundledRelay[]): void {
  const unknown = types.filter((type) => !relays.some(({ intentType }) => intentType === type));
  if (unknown.length > 0) throw new Error(`targetKeys names ${unknown.join(", ")}, which no relay takes`);
}

/** A topic with a policy has lost the one by default, which lets alarms in. Neither service may act for another account. */
function alertTopic(stack: Stack): Topic {
  const topic = new Topic(stack, "Alerts", { enforceSSL: true });
  topic.addToResourcePolicy(
    new PolicyStatement({
      principals: ["cloudwatch.amazonaws.com", "events.amazonaws.com"].map((name) => new ServicePrincipal(name)),
      actions: ["sns:Publish"],
      resources: [topic.topicArn],
      conditions: { StringEquals: { "aws:SourceAccount": stack.account } },
    }),
  );
  return topic;
}
