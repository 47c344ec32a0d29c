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
import { relayBatch, sweep } from "./relay-batch.ts";
import { relayDestination } from "./relay-destination.ts";
import { TimeLeft } from "./time-left.ts";

/** Options of `intentHandler`. */
export interface IntentHandlerOptions {
  /** Default: the tables named by DYNAMODB_OUTBOX and DYNAMODB_DEAD_LETTERS in the environment. */
  readonly outbox?: DynamoDbOutbox;
  /** The environment with the destination's settings. Default: `process.env`. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Called with every technical event. Default: writes one line of JSON each to standard output. */
  readonly report?: ReportEvent;
  /** Called with the lines of CloudWatch's dead-letter metric. Default: writes them to standard output. */
  readonly metricLine?: (line: string) => void;
  /** The maximum number of intents per publish. */
  readonly batchSize?: number;
}

/** A Lambda handler of one intent type. */
export interface IntentHandler {
  (event: IntentEvent, context: LambdaContext): Promise<BatchResponse>;
  /** The intent type that it relays. */
  readonly type: string;
  /** The destination's addresses, `host:port` each. */
  readonly addresses: readonly string[];
  /** Closes the connections to the destination and the database. AWS itself never calls it. */
  close(): Promise<void>;
}

const BATCH_SIZE = 100;

/**
 * Creates a Lambda handler that relays one intent type: new intents from the outbox's stream, and due intents on a
 * schedule. Opens connections at the first call, once per container. Throws CONFIG_INVALID or ConfigProblems at once.
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
  const link = openOnce(() => destination.open());
  const delivery = new IntentDelivery({
    outbox,
    route: intentRoute(relay, destination.name),
    retry: relay.retry ?? RETRY_PRESETS.intent,
    publisher: link.open,
    batchSize,
    reports,
    clock: systemClock,
    random: systemRandom,
  });
  const handlerContext = { type, outbox, delivery, reports, clock: systemClock };

  async function handle(event: IntentEvent, context: LambdaContext): Promise<BatchResponse> {
    const time = new TimeLeft(systemClock, context, destination.publishMs);
    try {
      if (event !== null && typeof event === "object" && "Records" in event && Array.isArray(event.Records)) {
        return await relayBatch(handlerContext, event.Records, time);
      }
      if (isSweep(event)) return await sweep(handlerContext, time);
    } finally {
      // A report that is too slow must not cost the response.
      await time.within(reports.flush()).catch(() => {});
    }
    throw new RelayError(
      "CONFIG_INVALID",
      `The relay of ${JSON.stringify(type)} was called with an event that is neither a DynamoDB stream batch nor a schedule: check the function's triggers.`,
    );
  }

  return Object.assign(handle, {
    type,
    addresses: destination.addresses,
    async close() {
      await link.close();
      if (options.outbox === undefined) await outbox.close();
    },
  });
}

/** Opens the publisher at the first call; a failed opening is repeated at the next one. */
function openOnce(openPublisher: () => Promise<Publisher>) {
  let opening: Promise<Publisher> | undefined;
  return {
    open: (): Promise<Publisher> => {
      opening ??= openPublisher().catch((error: unknown) => {
        opening = undefined;
        throw error;
      });
      return opening;
    },
    close: async (): Promise<void> => {
      const publisher = await opening?.catch(() => undefined);
      await publisher?.close();
    },
  };
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

/** A stream continues after a failed intent, so later intents of its key cannot wait. */
function refuseParking({ onExhausted = "skip", type }: IntentRelay): void {
  if (onExhausted === "skip") return;
  const what = `The relay of ${JSON.stringify(type)} has onExhausted: ${JSON.stringify(onExhausted)}`;
  throw new RelayError(
    "CONFIG_INVALID",
    `${what}; with DynamoDB, later intents of a key cannot wait for a failed one: write "skip".`,
  );
}
