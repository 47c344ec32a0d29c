export { type NatsPublisherOptions, type NatsTls, natsPublisher } from "./publishers/nats/nats-publisher.ts";
