import { RelayError } from "../core/errors.ts";
import { ADOPTED, type Takeover } from "../ports/queue-store.ts";
import type { CommittedBatch } from "../ports/transactions.ts";

/**
 * The batches that a former owner delivered and did not settle. `committed` is the end of the ledger. Throws LEDGER_GAP
 * where ledger and database contradict each other: it is then unknown what was delivered, and a guess would lose or
 * duplicate events.
 */
export function unsettledBatches(
  where: string,
  { settledBatch, ledgeredBatch }: Pick<Takeover, "settledBatch" | "ledgeredBatch">,
  committed: readonly CommittedBatch[],
): readonly CommittedBatch[] {
  const unsettled = committed.filter(({ batch }) => batch > settledBatch);
  if (ledgeredBatch === ADOPTED) return unsettled;
  const newest = committed.at(-1)?.batch ?? 0n;
  if (newest < ledgeredBatch) {
    const end = newest === 0n ? "The ledger is empty" : `The ledger ends with batch ${newest}`;
    throw new RelayError(
      "LEDGER_GAP",
      `${end}, but the database settled batch ${ledgeredBatch} of ${where} out of it.`,
    );
  }
  const missing = newest - settledBatch - BigInt(unsettled.length);
  if (newest > settledBatch && missing !== 0n) {
    const gap = `${missing} of the batches ${settledBatch + 1n} to ${newest} of ${where} are no longer in it`;
    throw new RelayError("LEDGER_GAP", `The ledger does not reach back to what the database settled: ${gap}.`);
  }
  return unsettled;
}
