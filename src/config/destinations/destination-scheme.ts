import type { Limits } from "../../core/limits.ts";
import type { Publisher } from "../../ports/publisher.ts";
import type { Settings } from "../settings.ts";

/** Where events go, with all that its publisher has to be told. */
export interface DestinationConfig {
  /** The broker's name in traces and texts: `kafka`, `rabbitmq`. */
  readonly kind: string;
  /** As routes, logs and metrics call it. Progress is kept under it. */
  readonly name: string;
  /** `host:port` each; one that takes a connection shows that the destination is there. Empty: nobody can be asked. */
  readonly addresses: readonly string[];
  readonly isExactlyOnce: boolean;
  /** Whether it writes to standard output, where the log would be otherwise. */
  readonly usesStdout?: boolean;
  /** What is legal and still deserves a second look. */
  readonly warnings: readonly string[];
  /** Events per second that it is given at most; null or absent for no limit. */
  readonly ratePerSecond?: number | null;
  readonly limits?: Partial<Limits>;
  /** What its publisher is told, secrets included. */
  readonly options: object;
  /** Makes the publisher. Its client is loaded only here; without it the error says what to install. */
  open(): Promise<Publisher>;
  /** What mends a missing topic; `{topic}` stands for its name. */
  readonly topicFix?: string;
  /** Present where topics have to be there before: those that cannot be written to, with the reason. */
  missingTopics?(topics: readonly string[]): Promise<ReadonlyMap<string, string>>;
}

/** An address as somebody wrote it, and what else is known. */
export interface WrittenDestination {
  /** The name that the destination is to have. */
  readonly name: string;
  /** The setting that holds the address, for complaints. */
  readonly setting: string;
  readonly address: string;
  readonly settings: Settings;
  /** Complaints go here. They show no more of an address than its scheme: what follows may hold a password. */
  readonly problems: string[];
}

/** One kind of destination: which addresses lead to it, and what becomes of them. */
export interface DestinationScheme {
  readonly kind: string;
  /** `amqp`, `amqps`. */
  readonly schemes: readonly string[];
  /** For people: `amqp://host/vhost?exchange=NAME`. */
  readonly example: string;
  /** Null when `problems` say why there is none. */
  configure(written: WrittenDestination): DestinationConfig | null;
}
