import type { ContractCase } from "./contract-case.ts";
import { laneLeaseCases } from "./lease-contract.ts";
import { backlogCases } from "./store-backlog.ts";
import { contentCases } from "./store-content.ts";
import { deadLetterCases } from "./store-dead-letters.ts";
import { durableClaimCases } from "./store-durable-claims.ts";
import { holdCases } from "./store-holds.ts";
import { laneCases } from "./store-lanes.ts";
import { ledgerCases } from "./store-ledger.ts";
import { logCases } from "./store-log.ts";
import { readingCases } from "./store-reading.ts";
import { settlingCases } from "./store-settling.ts";
import type { StoreHarness } from "./store-subject.ts";

/** The guarantees of every queue store. Each case opens its own subject and closes it. */
export const queueStoreContract: readonly ContractCase<StoreHarness>[] = [
  ...laneCases,
  ...readingCases,
  ...logCases,
  ...contentCases,
  ...settlingCases,
  ...holdCases,
  ...deadLetterCases,
  ...durableClaimCases,
  ...backlogCases,
  ...ledgerCases,
  ...laneLeaseCases,
];
