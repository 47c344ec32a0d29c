/** An attribute in the JSON that a function is given; binary ones are base64. */
export type StreamAttribute = Readonly<Record<string, unknown>>;

/** A record of a DynamoDB stream, as far as it matters here. */
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

/** What a function is called with: records of the stream, or the schedule's call to sweep. */
export type IntentEvent =
  | { readonly Records: readonly StreamRecord[] }
  | { readonly source: string }
  | { readonly "outbox-relay": "sweep" };

export interface LambdaContext {
  getRemainingTimeInMillis(): number;
}

/** The stream goes on behind the lowest of these; empty: all of them are done. */
export interface BatchResponse {
  readonly batchItemFailures: readonly { readonly itemIdentifier: string }[];
}
