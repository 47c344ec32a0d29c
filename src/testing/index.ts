export type { EventState } from "../core/state.ts";
export type { EventLog, LoggedEvent, LogItem, LogStart, NewLoggedEvent, Subscription } from "../ports/event-log.ts";
export {
  type MemoryAnswer,
  type MemoryPublisher,
  type MemoryPublisherOptions,
  memoryPublisher,
} from "../publishers/memory/memory-publisher.ts";
export {
  type BrokerReader,
  TransactionBroker,
  type TransactionBrokerOptions,
} from "../publishers/memory/memory-transaction-broker.ts";
export type { TransactionStep } from "../publishers/memory/memory-transactions.ts";
export { MemoryDatabase, type MemoryDatabaseOptions, type NewMemoryEvent } from "../sources/memory/memory-database.ts";
export { type MemorySource, type MemorySourceOptions, memorySource } from "../sources/memory/memory-source.ts";
export type {
  MemoryAttemptError,
  MemoryDeadLetter,
  MemoryEventRow,
  MemoryHoldRow,
  MemoryInstanceRow,
  MemoryLaneRow,
  MemoryPipelineTables,
  MemoryTables,
} from "../sources/memory/memory-tables.ts";
export {
  type MemoryTechnicalEventStore,
  memoryTechnicalEventStore,
} from "../telemetry/attempts/memory-technical-event-store.ts";
export { applicableCases, type ContractCase } from "./contracts/contract-case.ts";
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
