export type { TlsOptions } from "./core/tls.ts";
export type * from "./ports/request-queue.ts";
export {
  type BullmqEvent,
  type BullmqPublisherOptions,
  type BullmqTls,
  bullmqPublisher,
  type Removal,
} from "./publishers/bullmq/bullmq-publisher.ts";
export { bullmqRequestQueue } from "./publishers/bullmq/request-queue.ts";
