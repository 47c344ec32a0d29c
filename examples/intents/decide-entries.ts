import pg from "pg";
import { approve, reject, submit } from "./time-entries.ts";

/** A day at work: two entries are approved, one is rejected. */
const client = new pg.Client({ connectionString: process.env.DATABASE_URL });
await client.connect();
await submit(client, "entry-1", { userId: "ann", hours: 8 });
await submit(client, "entry-2", { userId: "ben", hours: 7.5 });
await submit(client, "entry-3", { userId: "cem", hours: 30 });
await approve(client, "entry-1");
await approve(client, "entry-2");
await reject(client, "entry-3", "a day has 24 hours");
const { rows } = await client.query<{ type: string; count: string }>(
  "select intent ->> 'type' as type, count(*) from time_tracking.intents group by 1 order by 1",
);
for (const { type, count } of rows) console.log(`${count} ${type}`);
await client.end();
