import type { SQSClient } from "@aws-sdk/client-sqs";
import { optionalClient } from "../../core/optional-client.ts";
import type { SqsSettings } from "./sqs-config.ts";

/** The client library. */
export type Sqs = typeof import("@aws-sdk/client-sqs");

const SOCKETS_MAX = 64;

export const loadSqs: () => Promise<Sqs> = optionalClient(
  "the SQS client",
  "@aws-sdk/client-sqs@3",
  () => import("@aws-sdk/client-sqs"),
);

/** Creates a client; it connects with the first request. */
export function openClient(sqs: Sqs, settings: SqsSettings): SQSClient {
  const { connectTimeoutMs, credentials, endpoint, region, requestTimeoutMs } = settings;
  const agent = { keepAlive: true, maxSockets: SOCKETS_MAX };
  return new sqs.SQSClient({
    region,
    // The engine decides what to retry, and when.
    maxAttempts: 1,
    requestHandler: {
      connectionTimeout: connectTimeoutMs,
      requestTimeout: requestTimeoutMs,
      throwOnRequestTimeout: true,
      httpAgent: agent,
      httpsAgent: agent,
    },
    // A private server may return queue URLs that bypass a proxy, so requests always go to the endpoint.
    ...(endpoint === null ? {} : { endpoint, useQueueUrlAsEndpoint: false }),
    ...(credentials === null ? {} : { credentials }),
  });
}
