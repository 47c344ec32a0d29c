export {
  type Answer,
  type MemoryPublisher,
  type MemoryPublisherOptions,
  memoryPublisher,
} from "../publishers/memory/memory-publisher.ts";
export { TransactionBroker } from "../publishers/memory/memory-transaction-broker.ts";
export { MemoryDatabase } from "../sources/memory/memory-database.ts";
export { type MemorySource, type MemorySourceOptions, memorySource } from "../sources/memory/memory-source.ts";
export {
  type MemoryTechnicalEventStore,
  memoryTechnicalEventStore,
} from "../telemetry/attempts/memory-technical-event-store.ts";
export { applicable, type ContractCase } from "./contracts/contract-case.ts";
export { membershipContract } from "./contracts/membership-contract.ts";
export { publisherContract } from "./contracts/publisher-contract.ts";
export type {
  PublisherHarness,
  PublisherSubject,
  PublisherTraits,
  Received,
} from "./contracts/publisher-subject.ts";
export { queueStoreContract } from "./contracts/queue-store-contract.ts";
export type {
  NewEvent,
  StoreCapabilities,
  StoredDeadLetter,
  StoreHarness,
  StoreSubject,
} from "./contracts/store-subject.ts";
export { transactionsContract } from "./contracts/transactions-contract.ts";
export type {
  TransactionsHarness,
  TransactionsSubject,
  TransactionsTraits,
  TransactionsUser,
} from "./contracts/transactions-stage.ts";
export { type MemoryEventLog, type MemoryEventLogOptions, memoryEventLog } from "./memory-event-log.ts";
