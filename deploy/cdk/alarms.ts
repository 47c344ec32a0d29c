import { Duration } from "aws-cdk-lib";
import { Alarm, ComparisonOperator, type IMetric, Metric, TreatMissingData } from "aws-cdk-lib/aws-cloudwatch";
import { SnsAction } from "aws-cdk-lib/aws-cloudwatch-actions";
import type { ITopic } from "aws-cdk-lib/aws-sns";
import type { IQueue } from "aws-cdk-lib/aws-sqs";
import { Construct } from "constructs";
import type { RelayFunction } from "./relay-function.ts";

interface Rule {
  readonly metric: IMetric;
  readonly threshold: number;
  readonly text: string;
  /** How many periods in a row; one unless told otherwise. */
  readonly periods?: number;
  readonly when?: ComparisonOperator;
  /** No data at all is what it tells of, too. A new alarm has none yet, and is silent about that. */
  readonly tellsSilence?: boolean;
}

const FIVE_MINUTES = Duration.minutes(5);
const LATE = Duration.minutes(10);

/** From the first day on: whatever a person has to know of one intent type, told to one topic. */
export class RelayAlarms extends Construct {
  constructor(scope: Construct, id: string, relay: RelayFunction, topic: ITopic) {
    super(scope, id);
    const { function: lambda, intentType, refused } = relay;
    const addAlarm = (name: string, rule: Rule) => alarm(this, name, rule, topic);
    addAlarm("DeadLetters", {
      metric: deadLetters(intentType),
      threshold: 1,
      text: `Intents of ${intentType} were given up and are in the dead-letter table.`,
    });
    addAlarm("Refused", {
      metric: depthOf(refused),
      threshold: 1,
      text: `The stream's records of ${intentType} were given up by Lambda; the intents are still in the outbox.`,
    });
    addAlarm("Late", {
      metric: lambda.metric("IteratorAge", { statistic: "Maximum", period: FIVE_MINUTES }),
      threshold: LATE.toMilliseconds(),
      text: `The relay of ${intentType} is more than ${LATE.toMinutes()} minutes behind the outbox.`,
    });
    addAlarm("Errors", {
      metric: lambda.metricErrors({ period: FIVE_MINUTES }),
      threshold: 1,
      text: `The relay of ${intentType} crashed or ran out of time.`,
    });
    addAlarm("Throttled", {
      metric: lambda.metricThrottles({ period: FIVE_MINUTES }),
      threshold: 1,
      periods: 3,
      text: `The relay of ${intentType} is not started, because the account has no room for it.`,
    });
    addAlarm("Silent", {
      metric: lambda.metricInvocations({ period: FIVE_MINUTES }),
      threshold: 1,
      periods: 3,
      when: ComparisonOperator.LESS_THAN_THRESHOLD,
      tellsSilence: true,
      text: `The relay of ${intentType} was not started for 15 minutes, not even to sweep.`,
    });
  }
}

/** For a queue into which nothing should ever come. */
export function queueAlarm(scope: Construct, id: string, queue: IQueue, topic: ITopic, text: string): void {
  alarm(scope, id, { metric: depthOf(queue), threshold: 1, text }, topic);
}

/** As the functions write it into their log, once per sweep and once per dead letter. */
function deadLetters(intentType: string): Metric {
  return new Metric({
    namespace: "OutboxRelay",
    metricName: "DeadLetters",
    dimensionsMap: { intentType },
    statistic: "Maximum",
    period: Duration.minutes(1),
  });
}

function depthOf(queue: IQueue): Metric {
  return queue.metricApproximateNumberOfMessagesVisible({ statistic: "Maximum", period: FIVE_MINUTES });
}

function alarm(scope: Construct, id: string, rule: Rule, topic: ITopic): void {
  const { metric, periods = 1, tellsSilence = false, text, threshold, when } = rule;
  const made = new Alarm(scope, id, {
    metric,
    threshold,
    evaluationPeriods: periods,
    comparisonOperator: when ?? ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
    treatMissingData: tellsSilence ? TreatMissingData.MISSING : TreatMissingData.NOT_BREACHING,
    alarmDescription: text,
  });
  made.addAlarmAction(new SnsAction(topic));
  if (tellsSilence) made.addInsufficientDataAction(new SnsAction(topic));
}
