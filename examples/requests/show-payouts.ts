import { kurrentdbLog } from "../../src/kurrentdb.ts"; // in your project: "outbox-relay/kurrentdb"
import { historyOf } from "./payouts.ts";

const log = kurrentdbLog({ url: process.env.KURRENTDB_URL ?? "" });
for (const [tenant, id] of [
  ["core", "payout-1"],
  ["core", "payout-2"],
  ["acme", "payout-3"],
] as const) {
  for (const { data, revision, type } of await historyOf(log, tenant, id)) {
    console.log(`${tenant} ${revision} ${type} ${JSON.stringify(data)}`);
  }
}
await log.close();
