import type { Table } from "aws-cdk-lib/aws-dynamodb";
import { EventBus, EventField, Rule, RuleTargetInput } from "aws-cdk-lib/aws-events";
import { SnsTopic } from "aws-cdk-lib/aws-events-targets";
import { PolicyStatement, Role, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import { CfnPipe } from "aws-cdk-lib/aws-pipes";
import { type ITopic, Topic } from "aws-cdk-lib/aws-sns";
import type { IQueue } from "aws-cdk-lib/aws-sqs";
import { Construct } from "constructs";
import { type FilterPattern, STREAM_RIGHTS } from "./outbox-relay.ts";

export interface StreamAlertProps {
  readonly table: Table;
  /** Which of its changes are told of: those that match one of these. */
  readonly filters: readonly FilterPattern[];
  /** The name of the event, for rules of your own. Its source is `outbox-relay`, its resource the table. */
  readonly event: string;
  /** What people read behind type and id of the intent. */
  readonly text: string;
  /** Its policy must let the rules of this account in. */
  readonly topic: ITopic;
  /** For what could not be told. */
  readonly untold: IQueue;
}

const SOURCE = "outbox-relay";

/** No payload and no reason: an alert is read in many places, and a quote inside of a text would break the template. */
const DETAIL = {
  id: "<$.dynamodb.Keys.id.S>",
  intentType: "<$.dynamodb.NewImage.intent.M.type.S>",
  attempts: "<$.dynamodb.NewImage.attempt_count.N>",
  createdAt: "<$.dynamodb.NewImage.created_at.S>",
};

/**
 * Changes of a table become events on the account's bus, and a rule tells a topic of them. No function has to run for it:
 * what another program or a person did to the table is told as well.
 */
export class StreamAlert extends Construct {
  constructor(scope: Construct, id: string, { event, filters, table, text, topic, untold }: StreamAlertProps) {
    super(scope, id);
    const bus = EventBus.fromEventBusName(this, "Bus", "default");
    const role = new Role(this, "Role", { assumedBy: new ServicePrincipal("pipes.amazonaws.com") });
    const allow = (actions: readonly string[], resource: string) =>
      role.addToPolicy(new PolicyStatement({ actions: [...actions], resources: [resource] }));
    allow(STREAM_RIGHTS, table.tableStreamArn!);
    allow(["events:PutEvents"], bus.eventBusArn);
    allow(["sqs:SendMessage"], untold.queueArn);
    const pipe = new CfnPipe(this, "Pipe", {
      description: `${event}, as events of the bus`,
      roleArn: role.roleArn,
      source: table.tableStreamArn!,
      sourceParameters: {
        filterCriteria: { filters: filters.map((filter) => ({ pattern: JSON.stringify(filter) })) },
        dynamoDbStreamParameters: {
          startingPosition: "TRIM_HORIZON",
          batchSize: 10,
          maximumRetryAttempts: 10,
          onPartialBatchItemFailure: "AUTOMATIC_BISECT",
          deadLetterConfig: { arn: untold.queueArn },
        },
      },
      target: bus.eventBusArn,
      targetParameters: {
        eventBridgeEventBusParameters: { source: SOURCE, detailType: event, resources: [table.tableArn] },
        inputTemplate: JSON.stringify(DETAIL),
      },
    });
    pipe.node.addDependency(role);
    // By its name alone: a rule would let every account's rules into a topic that is made here.
    const named = Topic.fromTopicArn(this, "Topic", topic.topicArn);
    new Rule(this, "Rule", {
      description: `Tells people of ${event}`,
      eventBus: bus,
      // The bus is that of the account, and there may be other outboxes.
      eventPattern: { source: [SOURCE], detailType: [event], resources: [table.tableArn] },
      targets: [new SnsTopic(named, { message: alertText(text), deadLetterQueue: untold })],
    });
  }
}

function alertText(text: string): RuleTargetInput {
  const [type, id] = ["intentType", "id"].map((name) => EventField.fromPath(`$.detail.${name}`));
  return RuleTargetInput.fromText(`${type} ${id} ${text}`);
}
