import type { SQSClient } from "@aws-sdk/client-sqs";
import { RelayError } from "../../core/errors.ts";
import type { SqsSettings } from "./sqs-config.ts";

/** The client library. */
export type Sqs = typeof import("@aws-sdk/client-sqs");

const INSTALL = "npm install @aws-sdk/client-sqs@3";
const SOCKETS_MAX = 64;

let loading: Promise<Sqs> | undefined;

/** The client is an optional peer dependency: without it the error says what to install. */
export function loadSqs(): Promise<Sqs> {
  loading ??= import("@aws-sdk/client-sqs").catch((cause: unknown) => {
    throw new RelayError("CONFIG_INVALID", `the SQS client is missing, install it: ${INSTALL}.`, { cause });
  });
  return loading;
}

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
