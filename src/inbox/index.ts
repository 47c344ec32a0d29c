export { type BullmqJob, fromBullmq } from "./from-bullmq.ts";
export { fromHttp, type HttpRequest, type HttpVerification } from "./from-http.ts";
export { fromKafka, type KafkaBytes, type KafkaRecord } from "./from-kafka.ts";
export { fromRabbitmq, type RabbitmqMessage } from "./from-rabbitmq.ts";
export type { InboxMessage } from "./inbox-message.ts";
export * from "./without-adapters.ts";
