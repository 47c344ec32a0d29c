import { runSeed, type SeedResult } from "./run-seed.ts";

/** Runs in its own process: receives lists of seeds and reports the result of each. */
export interface SeedOrder {
  readonly seeds: readonly number[];
  /** The first violated invariant ends the list. */
  readonly stopAtFailure: boolean;
}

export type WorkerMessage =
  | { readonly kind: "seed"; readonly result: Omit<SeedResult, "lines"> }
  | { readonly kind: "ready" };

function send(message: WorkerMessage): Promise<void> {
  return new Promise((resolve) => process.send?.(message, undefined, undefined, () => resolve()));
}

process.on("message", async (order: SeedOrder) => {
  for (const seed of order.seeds) {
    const { lines: _, ...result } = await runSeed(seed);
    await send({ kind: "seed", result });
    if (order.stopAtFailure && result.violations.length > 0) break;
  }
  await send({ kind: "ready" });
});
process.on("disconnect", () => process.exit(0));
await send({ kind: "ready" });
