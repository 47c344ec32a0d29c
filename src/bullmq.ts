export {
  type BullmqEvent,
  type BullmqPublisherOptions,
  type BullmqTls,
  bullmqPublisher,
  type Removal,
} from "./publishers/bullmq/bullmq-publisher.ts";
