export { type SqsPublisherOptions, sqsPublisher } from "./publishers/sqs/sqs-publisher.ts";
