import { systemClock, systemRandom } from "../core/clock.ts";
import { RelayError } from "../core/errors.ts";
import { RETRY_PRESETS } from "../core/retry-policy.ts";
import { type DynamoDbOutbox, dynamodbOutbox } from "../dynamodb/dynamodb-outbox.ts";
import { TABLE_VARIABLES } from "../dynamodb/tables.ts";
import type { Publisher } from "../ports/publisher.ts";
import { defineIntentRelay, type IntentRelay, intentRoute } from "../routing/intent-relay.ts";
import { IntentDelivery } from "./intent-delivery.ts";
import { IntentReports, type ReportEvent } from "./intent-reports.ts";
import type { BatchResponse, IntentEvent, LambdaContext } from "./lambda-events.ts";
import { relayBatch } from "./relay-batch.ts";
import { relayDestination } from "./relay-destination.ts";
import { sweep } from "./sweep.ts";
import { TimeLeft } from "./time-left.ts";

export interface IntentHandlerOptions {
  /** Absent: the tables that the environment names in DYNAMODB_OUTBOX and DYNAMODB_DEAD_LETTERS. */
  readonly outbox?: DynamoDbOutbox;
  /** Settings of the destination. Absent: the process's own. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Gets every technical event. Absent: one line of JSON each on standard output. */
  readonly report?: ReportEvent;
  /** Gets the lines that are CloudWatch's metric of dead letters. Absent: standard output. */
  readonly metricLine?: (line: string) => void;
  /** Intents in one publish. */
  readonly batchSize?: number;
}

export interface IntentHandler {
  (event: IntentEvent, context: LambdaContext): Promise<BatchResponse>;
  /** The one intent type that it relays. */
  readonly type: string;
  /** Of its destination, `host:port` each. */
  readonly addresses: readonly string[];
  /** Lets go of the destination and the database. A function of AWS is never told to. */
  close(): Promise<void>;
}

const BATCH_SIZE = 100;

/**
 * A Lambda handler that relays one intent type: what the outbox's stream tells, and on its schedule what is due. Opens
 * nothing before its first call, and then once per container. Throws CONFIG_INVALID or ConfigProblems at once.
 */
export function intentHandler(relay: IntentRelay, options: IntentHandlerOptions = {}): IntentHandler {
  const { type, ...checked } = defineIntentRelay(relay);
  refuseParking(relay);
  const { batchSize = BATCH_SIZE, env = process.env } = options;
  const destination = relayDestination(relay, env);
  const outbox = options.outbox ?? outboxOf(env);
  const reports = new IntentReports({
    intentType: type,
    pipeline: `${outbox.table}->${destination.name}`,
    target: checked.target.topic ?? destination.name,
    clock: systemClock,
    secrets: destination.secrets,
    report: options.report,
    metricLine: options.metricLine,
  });
  let opening: Promise<Publisher> | undefined;
  const open = () => {
    opening ??= destination.open().catch((error: unknown) => {
      opening = undefined;
      throw error;
    });
    return opening;
  };
  const delivery = new IntentDelivery({
    outbox,
    route: intentRoute(relay, destination.name),
    retry: relay.retry ?? RETRY_PRESETS.intent,
    publisher: open,
    batchSize,
    reports,
    clock: systemClock,
    random: systemRandom,
  });
  const world = { type, outbox, delivery, reports, clock: systemClock };

  async function handle(event: IntentEvent, context: LambdaContext): Promise<BatchResponse> {
    const time = new TimeLeft(systemClock, context, destination.publishMs);
    try {
      if (event !== null && typeof event === "object" && "Records" in event && Array.isArray(event.Records)) {
        return await relayBatch(world, event.Records, time);
      }
      if (isSweep(event)) return await sweep(world, time);
    } finally {
      // What is told is worth less than the answer.
      await time.within(reports.flush()).catch(() => {});
    }
    throw new RelayError(
      "CONFIG_INVALID",
      `The relay of ${JSON.stringify(type)} was called with something else than records of a DynamoDB stream or a schedule.`,
    );
  }

  return Object.assign(handle, {
    type,
    addresses: destination.addresses,
    async close() {
      const publisher = await opening?.catch(() => undefined);
      await publisher?.close();
      if (options.outbox === undefined) await outbox.close();
    },
  });
}

const SCHEDULES: ReadonlySet<unknown> = new Set(["aws.scheduler", "aws.events"]);

function isSweep(event: unknown): boolean {
  const { "outbox-relay": order, source } = (event ?? {}) as { readonly "outbox-relay"?: unknown; source?: unknown };
  return order === "sweep" || SCHEDULES.has(source);
}

function outboxOf(env: Readonly<Record<string, string | undefined>>): DynamoDbOutbox {
  const { [TABLE_VARIABLES.outbox]: table, [TABLE_VARIABLES.deadLetters]: deadLetterTable } = env;
  return dynamodbOutbox({ ...(table ? { table } : {}), ...(deadLetterTable ? { deadLetterTable } : {}) });
}

/** A stream goes on, so later intents of a key cannot wait for one that failed. */
function refuseParking({ onExhausted = "skip", type }: IntentRelay): void {
  if (onExhausted === "skip") return;
  const what = `The relay of ${JSON.stringify(type)} says onExhausted: ${JSON.stringify(onExhausted)}`;
  throw new RelayError("CONFIG_INVALID", `${what}; from DynamoDB later intents of a key never wait: write "skip".`);
}
