import type { ClientBase } from "pg";

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

export async function submit(client: ClientBase, entryId: string, { userId, hours }: Entry): Promise<void> {
  await client.query("insert into time_tracking.entries (id, user_id, hours) values ($1, $2, $3)", [
    entryId,
    userId,
    hours,
  ]);
}

export async function approve(client: ClientBase, entryId: string): Promise<void> {
  await inTransaction(client, async () => {
    const { userId, hours } = await decide(client, entryId, "approved");
    await intend(client, { type: "NotifyUserOfApproval", userId, entryId });
    await intend(client, { type: "SyncToPayroll", entryId, userId, hours });
  });
}

export async function reject(client: ClientBase, entryId: string, why: string): Promise<void> {
  await inTransaction(client, async () => {
    const { userId } = await decide(client, entryId, "rejected");
    await intend(client, { type: "InformCallerOfRejection", userId, entryId, why });
  });
}

async function decide(client: ClientBase, entryId: string, state: "approved" | "rejected"): Promise<Entry> {
  const { rows } = await client.query<{ user_id: string; hours: string }>(
    "update time_tracking.entries set state = $2 where id = $1 and state = 'submitted' returning user_id, hours",
    [entryId, state],
  );
  const [entry] = rows;
  if (entry === undefined) throw new Error(`The entry ${entryId} does not wait for a decision`);
  return { userId: entry.user_id, hours: Number(entry.hours) };
}

/** In the transaction of the decision: both are there, or neither is. */
async function intend(client: ClientBase, intent: Intent): Promise<void> {
  await client.query("insert into time_tracking.intents (intent) values ($1)", [JSON.stringify(intent)]);
}

async function inTransaction(client: ClientBase, work: () => Promise<void>): Promise<void> {
  await client.query("begin");
  try {
    await work();
    await client.query("commit");
  } catch (error) {
    await client.query("rollback");
    throw error;
  }
}
