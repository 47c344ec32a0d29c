import { kurrentdbLog } from "../../src/kurrentdb.ts"; // in your project: "outbox-relay/kurrentdb"
import { requestPayout } from "./payouts.ts";

/** A morning's commands: three payouts of two tenants. */
const log = kurrentdbLog({ url: process.env.KURRENTDB_URL ?? "" });
await requestPayout(log, "core", { id: "payout-1", account: "ann", amount: 25 });
await requestPayout(log, "core", { id: "payout-2", account: "busy-ben", amount: 40 });
await requestPayout(log, "acme", { id: "payout-3", account: "closed-cem", amount: 70 });
console.log("3 payouts asked for");
await log.close();
