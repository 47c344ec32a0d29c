import type { AttributeValue } from "@aws-sdk/client-dynamodb";
import type { DynamoDbLink } from "../dynamodb/dynamodb-link.ts";
import { recordOf } from "../dynamodb/intent-item.ts";
import type { IntentRecord } from "../dynamodb/intent-record.ts";
import type { IntentHandler } from "../lambda/intent-handler.ts";
import type { LambdaContext } from "../lambda/lambda-events.ts";
import { invocationOf } from "./invocation.ts";
import { insertRecord } from "./lambda-record.ts";

type Item = Record<string, AttributeValue>;

/** Options of a table search. */
export interface SearchOptions {
  readonly link: DynamoDbLink;
  readonly table: string;
  readonly streamArn: string;
  readonly context: () => LambdaContext;
  readonly signal: AbortSignal;
  /** Called after each page: how many items were read, and how many were passed to a relay. */
  readonly progress?: (looked: number, found: number) => void;
}

/** The counts of a table search. */
export interface Searched {
  readonly looked: number;
  /** Items that were passed to a relay. */
  readonly found: number;
  /** Of these, the items whose outcome the relay could not record. */
  readonly failed: number;
}

/** Bounds the memory and the work per request. */
const PAGE_ITEMS = 200;

/**
 * Reads the whole table and passes to the relays the intents that were never attempted: the stream may have lost them.
 * Intents that are delivered, claimed, or waiting for a retry are left alone.
 */
export async function searchTable(handlers: readonly IntentHandler[], options: SearchOptions): Promise<Searched> {
  const sum = { looked: 0, found: 0, failed: 0 };
  for await (const items of pagesOf(options.link, options.table)) {
    for (const handler of handlers) {
      const untried = items.filter((item) => isUntried(recordOf(item), handler.type));
      sum.found += untried.length;
      sum.failed += await handOver(handler, untried, options);
    }
    sum.looked += items.length;
    options.progress?.(sum.looked, sum.found);
    if (options.signal.aborted) break;
  }
  return sum;
}

/** Undelivered intents, in no order. */
export async function undelivered(
  link: DynamoDbLink,
  table: string,
  { limit, type }: { readonly limit: number; readonly type?: string },
): Promise<readonly IntentRecord[]> {
  const found: IntentRecord[] = [];
  for await (const items of pagesOf(link, table)) {
    const records = items.map(recordOf).filter(({ deliveredAt }) => deliveredAt === null);
    found.push(...records.filter((record) => type === undefined || record.type === type));
    if (found.length >= limit) break;
  }
  return found.slice(0, limit);
}

async function* pagesOf(link: DynamoDbLink, table: string): AsyncGenerator<readonly Item[]> {
  let from: Item | undefined;
  do {
    const request = {
      TableName: table,
      ConsistentRead: true,
      Limit: PAGE_ITEMS,
      ...(from === undefined ? {} : { ExclusiveStartKey: from }),
    };
    const { Items = [], LastEvaluatedKey } = await link.send(`searching ${table}`, (client, sdk) =>
      client.send(new sdk.ScanCommand(request)),
    );
    yield Items;
    from = LastEvaluatedKey;
  } while (from !== undefined);
}

function isUntried({ attemptCount, claimedUntil, deliveredAt, type }: IntentRecord, wanted: string): boolean {
  const isInHand = claimedUntil !== null && claimedUntil > new Date().toISOString();
  return type === wanted && deliveredAt === null && attemptCount === 0 && !isInHand;
}

/** The number of records that the handler returned as failed. */
async function handOver(handler: IntentHandler, items: readonly Item[], options: SearchOptions): Promise<number> {
  if (items.length === 0) return 0;
  const numbers = items.map((_, index) => String(index + 1));
  const records = items.map((item, index) => insertRecord(item, options.streamArn, numbers[index]!));
  const { failedFrom } = invocationOf(numbers, await handler({ Records: records }, options.context()));
  return failedFrom === null ? 0 : items.length - failedFrom;
}
