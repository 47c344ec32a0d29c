import { RelayError } from "../../core/errors.ts";

/** Options of `sqsPublisher`. */
export interface SqsPublisherOptions {
  readonly name?: string;
  readonly region: string;
  /** The queue's name; one that ends with `.fifo` is a FIFO queue. */
  readonly queue: string;
  /** The account that owns the queue, if it is not the caller's. */
  readonly account?: string;
  /** A server other than AWS: `http://host:port`. */
  readonly endpoint?: string;
  /** Default: what the SDK finds (environment, profile, role of the machine). */
  readonly credentials?: { readonly accessKeyId: string; readonly secretAccessKey: string };
  readonly connectTimeoutMs?: number;
  readonly requestTimeoutMs?: number;
  /** How long a publish starts new requests; keep it well below the engine's publish timeout. */
  readonly sendTimeoutMs?: number;
  /** The limit of one request and of one message with its attributes. Default: 1 MiB, the limit of AWS. */
  readonly bytesMax?: number;
}

/** The options with every default filled in. */
export interface SqsSettings {
  readonly name: string;
  readonly region: string;
  readonly queue: string;
  readonly isFifo: boolean;
  readonly account: string | null;
  readonly endpoint: string | null;
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string } | null;
  readonly connectTimeoutMs: number;
  readonly requestTimeoutMs: number;
  readonly sendTimeoutMs: number;
  readonly bytesMax: number;
}

/** Below the engine's publish timeout of 5 s, so that a timeout is reported with its reason. */
const CONNECT_TIMEOUT_MS = 2_000;
const REQUEST_TIMEOUT_MS = 4_000;
const SEND_TIMEOUT_MS = 2_500;
const BYTES_MAX = 1_048_576;

/** Fills in the defaults; throws CONFIG_INVALID with the setting's name. */
export function sqsSettings(options: SqsPublisherOptions): SqsSettings {
  const { account, credentials, endpoint, name = "sqs", queue, region } = options;
  const fault = queueFault(queue) ?? regionFault(region) ?? accountFault(account) ?? endpointFault(endpoint);
  check(fault === null, fault ?? "");
  return {
    name,
    region,
    queue,
    isFifo: queue.endsWith(".fifo"),
    account: account ?? null,
    endpoint: endpoint ?? null,
    credentials: credentials ?? null,
    connectTimeoutMs: countOf("connectTimeoutMs", options.connectTimeoutMs, CONNECT_TIMEOUT_MS),
    requestTimeoutMs: countOf("requestTimeoutMs", options.requestTimeoutMs, REQUEST_TIMEOUT_MS),
    sendTimeoutMs: countOf("sendTimeoutMs", options.sendTimeoutMs, SEND_TIMEOUT_MS),
    bytesMax: countOf("bytesMax", options.bytesMax, BYTES_MAX),
  };
}

/** Null when the queue name is legal, else what is wrong with it. */
export function queueFault(queue: string): string | null {
  const shown = JSON.stringify(queue.slice(0, 100));
  if (queue === "") return "the queue's name is missing";
  if (queue.length > 80) return `the queue's name ${shown} is longer than 80 characters`;
  const isLegal = /^[\w-]+(?:\.fifo)?$/.test(queue);
  return isLegal
    ? null
    : `the queue's name ${shown} must consist of letters, digits, "-" and "_", and may end with .fifo`;
}

/** Null when the region is of a valid form, else what is wrong with it. */
export function regionFault(region: string): string | null {
  return /^[a-z]{2}[a-z0-9-]*-\d+$/.test(region)
    ? null
    : `the region ${JSON.stringify(region)} is not of the form eu-central-1`;
}

/** Null when the account is valid or absent, else what is wrong with it. */
export function accountFault(account: string | undefined): string | null {
  return account === undefined || /^\d{12}$/.test(account) ? null : "the account is not a number of 12 digits";
}

/** Null when the endpoint is valid or absent, else what is wrong with it. */
export function endpointFault(endpoint: string | undefined): string | null {
  const url = endpoint === undefined ? null : URL.parse(endpoint);
  const isRight = endpoint === undefined || (url !== null && /^https?:$/.test(url.protocol) && url.username === "");
  return isRight ? null : "the endpoint is not an address like http://host:port";
}

function check(isRight: boolean, what: string): asserts isRight {
  if (!isRight) throw new RelayError("CONFIG_INVALID", `SQS: ${what}.`);
}

function countOf(setting: string, value: number | undefined, fallback: number): number {
  const isRight = value === undefined || (Number.isSafeInteger(value) && value > 0);
  check(isRight, `${setting} is ${value}, a whole number above 0 is expected`);
  return value ?? fallback;
}
