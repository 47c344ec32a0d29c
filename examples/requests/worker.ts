import { kurrentdbLog } from "../../src/kurrentdb.ts"; // in your project: "outbox-relay/kurrentdb"
import { exponentialRetry, FinalFailure, requestWorker } from "../../src/request-worker.ts"; // in your project: "outbox-relay/worker"
import { CONTEXT, payoutIn } from "./payouts.ts";

const { BANK_URL = "", KURRENTDB_URL = "", LOCK = "900000", REDIS_URL = "" } = process.env;
const log = kurrentdbLog({ url: KURRENTDB_URL });
const worker = requestWorker({
  context: CONTEXT,
  redis: REDIS_URL,
  log,
  lockMs: Number(LOCK),
  stalledMs: Math.min(30_000, Number(LOCK)),
  retry: exponentialRetry({ initialMs: 200, jitter: 0.2, attemptsMax: 5 }),
  // The job holds a reference only: what is to be paid stands in the log.
  resolve: ({ events }) => payoutIn(events),
  async execute({ account, amount }, { idempotencyKey, signal }) {
    const response = await fetch(`${BANK_URL}/transfers`, {
      method: "POST",
      headers: { "content-type": "application/json", "idempotency-key": idempotencyKey },
      body: JSON.stringify({ account, amount }),
      signal: AbortSignal.any([signal, AbortSignal.timeout(30_000)]),
    });
    if (response.ok) return await response.json();
    if (response.status === 422) throw new FinalFailure(`the bank refuses: ${await response.text()}`);
    // Retry-After is read from it.
    throw response;
  },
  onLog: (line) => console.log(JSON.stringify(line)),
});
await worker.run();

process.once("SIGTERM", async () => {
  await worker.close();
  await log.close();
});
