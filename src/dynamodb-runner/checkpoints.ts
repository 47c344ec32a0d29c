import type { AttributeValue, UpdateItemCommandInput } from "@aws-sdk/client-dynamodb";
import { isConditionFailure } from "../dynamodb/dynamodb-errors.ts";
import type { DynamoDbLink } from "../dynamodb/dynamodb-link.ts";

/** The right to read one shard for one relay, until another runner takes it with a higher fence. */
export interface ShardGrant {
  readonly relay: string;
  readonly shard: string;
  readonly fence: number;
}

/** How far each relay has read. Every write is conditional on owner and fence, so a former owner changes nothing. */
export interface Checkpoints {
  ofRelay(relay: string): Promise<readonly CheckpointRow[]>;
  /**
   * Takes a free row. Null when the row has changed since it was read, for example because another runner was faster.
   */
  take(seen: CheckpointRow): Promise<ShardGrant | null>;
  /** Sends a heartbeat. False: the grant is lost. */
  renew(grant: ShardGrant): Promise<boolean>;
  /** Writes progress, which is also a heartbeat. False: the grant is lost and nothing was written. */
  save(grant: ShardGrant, progress: Progress): Promise<boolean>;
  /** Lets another runner take it at once. */
  release(grant: ShardGrant): Promise<void>;
  /** Restarts at the oldest record. The fence rises, so a current owner loses its grant. */
  reset(row: CheckpointRow): Promise<void>;
  /** Removes the row of a shard that no longer exists. */
  remove(row: CheckpointRow): Promise<void>;
}

interface Progress {
  readonly position?: string | null;
  readonly isDone?: boolean;
  readonly lost?: string;
}

type RowKey = Pick<CheckpointRow, "relay" | "shard">;
type Change = Pick<UpdateItemCommandInput, "UpdateExpression" | "ConditionExpression" | "ExpressionAttributeValues">;

const CREATE_WAIT_S = 60;
const OWNED = "owned_by = :owner AND fence = :fence";
const ONE = { ":one": { N: "1" } };

/** The table `outbox-relay-checkpoints`. */
export class CheckpointTable implements Checkpoints {
  readonly #link: DynamoDbLink;
  readonly #table: string;
  readonly #owner: string;

  /** The owner's name is unique to this run of the process. */
  constructor(link: DynamoDbLink, table: string, owner: string) {
    this.#link = link;
    this.#table = table;
    this.#owner = owner;
  }

  async ofRelay(relay: string): Promise<readonly CheckpointRow[]> {
    const rows: CheckpointRow[] = [];
    let from: Record<string, AttributeValue> | undefined;
    do {
      const query = {
        TableName: this.#table,
        ConsistentRead: true,
        KeyConditionExpression: "relay = :relay",
        ExpressionAttributeValues: { ":relay": { S: relay } },
        ...(from === undefined ? {} : { ExclusiveStartKey: from }),
      };
      const { Items = [], LastEvaluatedKey } = await this.#link.send("reading the checkpoints", (client, sdk) =>
        client.send(new sdk.QueryCommand(query)),
      );
      rows.push(...Items.map(checkpointRow));
      from = LastEvaluatedKey;
    } while (from !== undefined);
    return rows;
  }

  async take(seen: CheckpointRow): Promise<ShardGrant | null> {
    const grant = { relay: seen.relay, shard: seen.shard, fence: seen.fence + 1 };
    const isNew = seen.fence === 0;
    const isTaken = await this.#update(seen, {
      UpdateExpression: "SET owned_by = :owner, fence = :fence, beat = :none, stream_arn = :stream",
      ConditionExpression: isNew ? "attribute_not_exists(fence)" : "fence = :seen AND beat = :beat",
      ExpressionAttributeValues: {
        ...this.#mine(grant),
        ":none": { N: "0" },
        ":stream": { S: seen.stream },
        ...(isNew ? {} : { ":seen": { N: String(seen.fence) }, ":beat": { N: String(seen.beat) } }),
      },
    });
    return isTaken ? grant : null;
  }

  async renew(grant: ShardGrant): Promise<boolean> {
    return await this.save(grant, {});
  }

  async save(grant: ShardGrant, { isDone = false, lost, position }: Progress): Promise<boolean> {
    const values: Record<string, AttributeValue> = {
      ...(position === undefined || position === null ? {} : { place: { S: position } }),
      ...(isDone ? { is_done: { BOOL: true } } : {}),
      ...(lost === undefined ? {} : { lost: { S: lost } }),
    };
    const names = Object.keys(values);
    const sets = names.length === 0 ? "" : `SET ${names.map((name) => `${name} = :${name}`).join(", ")} `;
    return await this.#update(grant, {
      UpdateExpression: `${sets}ADD beat :one`,
      ConditionExpression: OWNED,
      ExpressionAttributeValues: {
        ...this.#mine(grant),
        ...ONE,
        ...Object.fromEntries(names.map((name) => [`:${name}`, values[name]!])),
      },
    });
  }

  async release(grant: ShardGrant): Promise<void> {
    await this.#update(grant, {
      UpdateExpression: "REMOVE owned_by",
      ConditionExpression: OWNED,
      ExpressionAttributeValues: this.#mine(grant),
    });
  }

  async reset(row: CheckpointRow): Promise<void> {
    await this.#update(row, {
      UpdateExpression: "REMOVE place, lost, is_done, owned_by ADD fence :one",
      ConditionExpression: "attribute_exists(fence)",
      ExpressionAttributeValues: ONE,
    });
  }

  async remove({ relay, shard }: CheckpointRow): Promise<void> {
    const Key = { relay: { S: relay }, shard: { S: shard } };
    await this.#link.send("removing a checkpoint", (client, sdk) =>
      client.send(new sdk.DeleteItemCommand({ TableName: this.#table, Key })),
    );
  }

  #mine({ fence }: ShardGrant): Record<string, AttributeValue> {
    return { ":owner": { S: this.#owner }, ":fence": { N: String(fence) } };
  }

  /** False when the condition did not hold. */
  async #update({ relay, shard }: RowKey, change: Change): Promise<boolean> {
    const Key = { relay: { S: relay }, shard: { S: shard } };
    try {
      await this.#link.send("writing a checkpoint", (client, sdk) =>
        client.send(new sdk.UpdateItemCommand({ TableName: this.#table, Key, ...change })),
      );
      return true;
    } catch (error) {
      if (isConditionFailure(error)) return false;
      throw error;
    }
  }
}

/** Creates the table if it is missing and waits until it can be used. */
export async function createCheckpointTable(link: DynamoDbLink, table: string): Promise<void> {
  const text = (name: string) => ({ AttributeName: name, AttributeType: "S" as const });
  await link.send(`creating the table ${table}`, async (client, sdk) => {
    const wanted = new sdk.CreateTableCommand({
      TableName: table,
      BillingMode: "PAY_PER_REQUEST",
      AttributeDefinitions: [text("relay"), text("shard")],
      KeySchema: [
        { AttributeName: "relay", KeyType: "HASH" },
        { AttributeName: "shard", KeyType: "RANGE" },
      ],
    });
    await client.send(wanted).catch((error: unknown) => {
      if (!(error instanceof sdk.ResourceInUseException)) throw error;
    });
    await sdk.waitUntilTableExists({ client, maxWaitTime: CREATE_WAIT_S, minDelay: 1 }, { TableName: table });
  });
}

/** How far one relay has read one shard, and which runner owns it. */
export interface CheckpointRow {
  readonly relay: string;
  readonly shard: string;
  /** The stream that the shard belongs to. A table with a new stream has new shards. */
  readonly stream: string;
  /** Everything up to this sequence number is relayed; null: nothing yet. */
  readonly position: string | null;
  /** The shard is closed and read to its end. */
  readonly isDone: boolean;
  /** Why no runner may continue before `dynamodb recover`; null if all is well. */
  readonly lost: string | null;
  readonly owner: string | null;
  /** Rises with each owner: a write with an older fence changes nothing. */
  readonly fence: number;
  /** The heartbeat counter. An owner whose beat does not change for the time of a lease is dead. */
  readonly beat: number;
}

type Item = Readonly<Record<string, AttributeValue>>;

/** Reads a checkpoint item. */
function checkpointRow(item: Item): CheckpointRow {
  return {
    relay: item.relay?.S ?? "",
    shard: item.shard?.S ?? "",
    stream: item.stream_arn?.S ?? "",
    position: item.place?.S ?? null,
    isDone: item.is_done?.BOOL ?? false,
    lost: item.lost?.S ?? null,
    owner: item.owned_by?.S ?? null,
    fence: Number(item.fence?.N ?? 0),
    beat: Number(item.beat?.N ?? 0),
  };
}
