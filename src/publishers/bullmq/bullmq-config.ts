import { RelayError } from "../../core/errors.ts";
import type { TlsOptions } from "../../core/tls.ts";

/** TLS settings, in PEM. */
export type BullmqTls = Pick<TlsOptions, "ca" | "cert" | "key">;

/** When finished jobs are removed. True: at once; a number: keep this many; false: never. */
export type Removal = boolean | number;

/** Options of `bullmqPublisher`. */
export interface BullmqPublisherOptions {
  readonly name?: string;
  /** Exactly one `host:port`. */
  readonly hosts: readonly string[];
  readonly username?: string;
  readonly password?: string;
  readonly database?: number;
  readonly tls?: BullmqTls;
  /** The queue of all events. Default: each event's topic is its queue. */
  readonly queue?: string;
  /** The prefix of BullMQ's keys; workers must use the same. */
  readonly prefix?: string;
  /** The name of all jobs. Default: the event's type. */
  readonly jobName?: string;
  /** How many attempts a worker makes per job. */
  readonly attempts?: number;
  readonly removeOnComplete?: Removal;
  readonly removeOnFail?: Removal;
  readonly connectTimeoutMs?: number;
  readonly requestTimeoutMs?: number;
}

/** The options with every default filled in. */
export interface BullmqSettings {
  readonly name: string;
  readonly host: string;
  readonly port: number;
  readonly username: string | null;
  readonly password: string | null;
  readonly database: number;
  readonly tls: BullmqTls | null;
  readonly queue: string | null;
  readonly prefix: string;
  readonly jobName: string | null;
  readonly jobOptions: {
    readonly attempts: number;
    readonly removeOnComplete: Removal;
    readonly removeOnFail: Removal;
  };
  readonly connectTimeoutMs: number;
  readonly requestTimeoutMs: number;
}

/** Below the engine's publish timeout of 5 s, so that a timeout is reported with its reason. */
const REQUEST_TIMEOUT_MS = 4_000;
const CONNECT_TIMEOUT_MS = 3_000;

/** Fills in the defaults; throws CONFIG_INVALID with the option's name. */
export function bullmqSettings(options: BullmqPublisherOptions): BullmqSettings {
  const { attempts = 1, database = 0, name = "bullmq", prefix = "bull", queue = null } = options;
  const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(options.hosts[0] ?? "") ?? [];
  const host = bracketed ?? plain;
  if (host === undefined || options.hosts.length !== 1)
    throw invalid("hosts must have exactly one entry of the form host:port");
  const fault = queue === null ? null : queueFault(queue);
  if (fault !== null) throw invalid(`queue: ${fault}`);
  if (!Number.isInteger(attempts) || attempts < 1) throw invalid("attempts must be a whole number of at least 1");
  if (options.username !== undefined && options.password === undefined)
    throw invalid("username is set but password is not");
  return {
    name,
    host,
    port: Number(digits),
    username: options.username ?? null,
    password: options.password ?? null,
    database,
    tls: options.tls ?? null,
    queue,
    prefix,
    jobName: options.jobName ?? null,
    jobOptions: {
      attempts,
      removeOnComplete: options.removeOnComplete ?? false,
      removeOnFail: options.removeOnFail ?? false,
    },
    connectTimeoutMs: options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS,
    requestTimeoutMs: options.requestTimeoutMs ?? REQUEST_TIMEOUT_MS,
  };
}

/** Null when the name is legal, else what is wrong with it. */
export function queueFault(queue: string): string | null {
  if (queue === "") return "the queue's name is empty";
  if (queue.includes(":")) return `the queue's name ${JSON.stringify(queue)} contains ":", which BullMQ forbids`;
  return queue.isWellFormed() ? null : "the queue's name contains half a character (a lone surrogate)";
}

function invalid(what: string): RelayError {
  return new RelayError("CONFIG_INVALID", `BullMQ: ${what}.`);
}
