import {
  type DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
  type TransactWriteItem,
  TransactWriteItemsCommand,
} from "@aws-sdk/client-dynamodb";
import type { DynamoDbOutbox, NewIntent } from "../../src/dynamodb-outbox.ts"; // in your project: "outbox-relay/dynamodb"

/** What the domain wants to happen elsewhere. Where that is, and how it gets there, it does not know. */
type Intent =
  | { readonly type: "NotifyUserOfApproval"; readonly userId: string; readonly entryId: string }
  | {
      readonly type: "InformCallerOfRejection";
      readonly userId: string;
      readonly entryId: string;
      readonly why: string;
    }
  | { readonly type: "SyncToPayroll"; readonly entryId: string; readonly userId: string; readonly hours: number };

interface Entry {
  readonly userId: string;
  readonly hours: number;
}

export const ENTRIES = "time-entries";

/** The command handler: every decision and what follows from it are one transaction. */
export class TimeEntries {
  readonly #client: DynamoDBClient;
  readonly #outbox: DynamoDbOutbox;

  constructor(client: DynamoDBClient, outbox: DynamoDbOutbox) {
    this.#client = client;
    this.#outbox = outbox;
  }

  async submit(entryId: string, { userId, hours }: Entry): Promise<void> {
    const Item = { id: { S: entryId }, user_id: { S: userId }, hours: { N: String(hours) }, state: { S: "submitted" } };
    await this.#client.send(new PutItemCommand({ TableName: ENTRIES, Item }));
  }

  async approve(entryId: string): Promise<void> {
    const { userId, hours } = await this.#entry(entryId);
    await this.#decide(entryId, "approved", [
      { type: "NotifyUserOfApproval", userId, entryId },
      { type: "SyncToPayroll", entryId, userId, hours },
    ]);
  }

  async reject(entryId: string, why: string): Promise<void> {
    const { userId } = await this.#entry(entryId);
    await this.#decide(entryId, "rejected", [{ type: "InformCallerOfRejection", userId, entryId, why }]);
  }

  async #entry(entryId: string): Promise<Entry> {
    const { Item } = await this.#client.send(
      new GetItemCommand({ TableName: ENTRIES, Key: { id: { S: entryId } }, ConsistentRead: true }),
    );
    if (Item === undefined) throw new Error(`There is no entry ${entryId}`);
    return { userId: Item.user_id?.S ?? "", hours: Number(Item.hours?.N) };
  }

  /** Both are there, the decision and its intents, or neither is. */
  async #decide(entryId: string, state: "approved" | "rejected", intents: readonly Intent[]): Promise<void> {
    const decision: TransactWriteItem = {
      Update: {
        TableName: ENTRIES,
        Key: { id: { S: entryId } },
        UpdateExpression: "SET #state = :state",
        ConditionExpression: "#state = :submitted",
        ExpressionAttributeNames: { "#state": "state" },
        ExpressionAttributeValues: { ":state": { S: state }, ":submitted": { S: "submitted" } },
      },
    };
    const TransactItems = [decision, ...this.#outbox.intend(intents.map(written))];
    await this.#client.send(new TransactWriteItemsCommand({ TransactItems }));
  }
}

function written({ type, ...payload }: Intent): NewIntent {
  return { type, payload };
}
