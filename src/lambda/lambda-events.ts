/** An attribute in the JSON that AWS passes to a function; bytes are base64. */
export type StreamAttribute = Readonly<Record<string, unknown>>;

/** A record of a DynamoDB stream, with the fields that are read. */
export interface StreamRecord {
  readonly eventName?: string | undefined;
  readonly eventSource?: string | undefined;
  readonly eventSourceARN?: string | undefined;
  readonly dynamodb?:
    | {
        readonly Keys?: Readonly<Record<string, StreamAttribute>> | undefined;
        readonly NewImage?: Readonly<Record<string, StreamAttribute>> | undefined;
        readonly OldImage?: Readonly<Record<string, StreamAttribute>> | undefined;
        readonly SequenceNumber?: string | undefined;
      }
    | undefined;
}

/** The event of a call: stream records, or the schedule's request to sweep. */
export type IntentEvent =
  | { readonly Records: readonly StreamRecord[] }
  | { readonly source: string }
  | { readonly "outbox-relay": "sweep" };

/** The part of the Lambda context that is used. */
export interface LambdaContext {
  getRemainingTimeInMillis(): number;
}

/** AWS delivers the batch again from the lowest of these; empty: all records are done. */
export interface BatchResponse {
  readonly batchItemFailures: readonly { readonly itemIdentifier: string }[];
}
