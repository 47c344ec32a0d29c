export {
  type HttpPublisherOptions,
  type HttpTarget,
  type HttpTls,
  httpPublisher,
} from "./publishers/http/http-publisher.ts";
