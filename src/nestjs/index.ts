export { OutboxHealthIndicator, type OutboxHealthResult } from "./outbox-health.ts";
export { OutboxModule, type OutboxModuleAsyncOptions, type OutboxModuleOptions } from "./outbox-module.ts";
export { OutboxRelay, type RelayInProcess } from "./outbox-relay.ts";
export { OutboxService } from "./outbox-service.ts";
