// The wire of KurrentDB, from the code that its client was generated with; the client's version is pinned for that.
import { createRequire } from "node:module";

type StreamsPb = typeof import("@kurrent/kurrentdb-client/generated/kurrentdb/protocols/v1/streams_pb.js");
type SharedPb = typeof import("@kurrent/kurrentdb-client/generated/kurrentdb/protocols/v1/shared_pb.js");
type FeaturesPb = typeof import("@kurrent/kurrentdb-client/generated/kurrentdb/protocols/v1/serverfeatures_pb.js");
type StatusPb = typeof import("@kurrent/kurrentdb-client/generated/kurrentdb/protocols/v1/status_pb.js");

/** A call as far as the server needs it. */
export interface Call<Request> {
  readonly request: Request;
  readonly metadata: { get(key: string): readonly (string | Buffer)[] };
  readonly cancelled: boolean;
  write(frame: Buffer): boolean;
  end(): void;
  emit(event: "error", status: CallStatus): boolean;
  on(event: "data", listener: (request: Request) => void): unknown;
  on(event: "end" | "cancelled" | "error", listener: () => void): unknown;
  once(event: "drain" | "cancelled", listener: () => void): unknown;
  off(event: "drain" | "cancelled", listener: () => void): unknown;
}

export interface CallStatus {
  readonly code: number;
  readonly details: string;
  readonly metadata?: object;
}

export type Reply = (error: CallStatus | null, frame?: Buffer) => void;

interface Method {
  readonly path: string;
  readonly responseSerialize: (message: Buffer) => Buffer;
}

interface Grpc {
  readonly Server: new (
    options: object,
  ) => {
    addService(methods: Readonly<Record<string, Method>>, handlers: object): void;
    bindAsync(address: string, credentials: unknown, done: (error: Error | null) => void): void;
  };
  readonly ServerCredentials: {
    createInsecure(): unknown;
    createSsl(roots: null, pairs: readonly { readonly private_key: Buffer; readonly cert_chain: Buffer }[]): unknown;
  };
  readonly Metadata: new () => { set(key: string, value: string): void };
  readonly status: Readonly<Record<string, number>>;
}

const CLIENT = "@kurrent/kurrentdb-client";
const GENERATED = `${CLIENT}/generated/kurrentdb/protocols/v1`;
const require = createRequire(import.meta.url);
/** What only the client depends on is found from where the client is. */
const clientRequire = createRequire(require.resolve(CLIENT));

export const grpc = clientRequire("@grpc/grpc-js") as Grpc;
export const streamsPb = require(`${GENERATED}/streams_pb.js`) as StreamsPb;
export const sharedPb = require(`${GENERATED}/shared_pb.js`) as SharedPb;
export const featuresPb = require(`${GENERATED}/serverfeatures_pb.js`) as FeaturesPb;
export const statusPb = require(`${GENERATED}/status_pb.js`) as StatusPb;

type Details = NonNullable<ReturnType<InstanceType<StatusPb["Status"]>["getDetails"]>>;
type Nothing = NonNullable<ReturnType<InstanceType<SharedPb["WrongExpectedVersion"]>["getCurrentNoStream"]>>;
type Time = NonNullable<ReturnType<InstanceType<StreamsPb["ReadResp"]["CaughtUp"]>["getTimestamp"]>>;
const wellKnown = (name: string) => clientRequire(`google-protobuf/google/protobuf/${name}_pb.js`) as unknown;

export const { Any } = wellKnown("any") as { readonly Any: new () => Details };
export const { Empty } = wellKnown("empty") as { readonly Empty: new () => Nothing };
export const { Timestamp } = wellKnown("timestamp") as { readonly Timestamp: { fromDate(date: Date): Time } };

const services = {
  ...(require(`${GENERATED}/streams_grpc_pb.js`) as { StreamsService: Record<string, Method> }),
  ...(require(`${GENERATED}/serverfeatures_grpc_pb.js`) as { ServerFeaturesService: Record<string, Method> }),
};

/** Answers are bytes already: an event is serialised once, however many subscriptions it goes to. */
export const streamsMethods = withFrames(services.StreamsService);
export const featuresMethods = withFrames(services.ServerFeaturesService);

function withFrames(service: Readonly<Record<string, Method>>): Readonly<Record<string, Method>> {
  const entries = Object.entries(service);
  return Object.fromEntries(
    entries.map(([name, method]) => [name, { ...method, responseSerialize: (frame: Buffer) => frame }]),
  );
}

export function frameOf(message: { serializeBinary(): Uint8Array }): Buffer {
  const bytes = message.serializeBinary();
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

export function streamIdentifier(name: string) {
  const identifier = new sharedPb.StreamIdentifier();
  identifier.setStreamName(Buffer.from(name).toString("base64"));
  return identifier;
}

export function streamName(identifier: { getStreamName_asU8(): Uint8Array } | undefined): string {
  return Buffer.from(identifier?.getStreamName_asU8() ?? []).toString("utf8");
}

/** How the server says what went wrong beside the status: in the trailers. */
export function failure(status: string, details: string, trailers: Readonly<Record<string, string>> = {}): CallStatus {
  const metadata = new grpc.Metadata();
  for (const [key, value] of Object.entries(trailers)) metadata.set(key, value);
  return { code: grpc.status[status] ?? 2, details, metadata };
}
