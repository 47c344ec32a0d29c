import type { Limits } from "../../core/limits.ts";
import type { Publisher } from "../../ports/publisher.ts";
import type { Settings } from "../settings/settings.ts";

/** A configured destination, with everything that its publisher needs. */
export interface DestinationConfig {
  /** The broker's kind in traces and messages: `kafka`, `rabbitmq`. */
  readonly kind: string;
  /** The name in routes, logs and metrics. Progress is stored under it. */
  readonly name: string;
  /**
   * `host:port` each, to check by a connection that the destination is reachable. Empty if there is nothing to check.
   */
  readonly addresses: readonly string[];
  readonly isExactlyOnce: boolean;
  /** Whether it writes to standard output. Then the log goes to standard error. */
  readonly usesStdout?: boolean;
  /** Valid settings that deserve attention. */
  readonly warnings: readonly string[];
  /** Rate limit in events per second; null or absent without a limit. */
  readonly ratePerSecond?: number | null;
  readonly limits?: Partial<Limits>;
  /** The publisher's options, secrets included. */
  readonly options: object;
  /** Opens the publisher. Loads its client only now; without the client the error says what to install. */
  open(): Promise<Publisher>;
  /** How to create a missing topic; `{topic}` stands for its name. */
  readonly topicFix?: string;
  /** Present where topics must exist before a publish. Returns the missing or unwritable ones, with the reason. */
  missingTopics?(topics: readonly string[]): Promise<ReadonlyMap<string, string>>;
}

/** A destination's address as written, with its context. */
export interface WrittenDestination {
  /** The destination's name. */
  readonly name: string;
  /** The setting that holds the address, for problems. */
  readonly setting: string;
  readonly address: string;
  readonly settings: Settings;
  /** Receives the problems. They show no more of an address than its scheme: the rest can contain a password. */
  readonly problems: string[];
}

/** One kind of destination: which addresses select it, and how to configure it. */
export interface DestinationScheme {
  readonly kind: string;
  /** Such as `amqp`, `amqps`. */
  readonly schemes: readonly string[];
  /** For messages: `amqp://host/vhost?exchange=NAME`. */
  readonly example: string;
  /** Null when `problems` say why there is none. */
  configure(written: WrittenDestination): DestinationConfig | null;
}

/** The relay never lowers a guarantee silently: asking for more than the destination offers is an error. */
export function refuseExactlyOnce({ settings, problems }: WrittenDestination, kind: string): void {
  if (settings.DELIVERY !== "exactly-once") return;
  problems.push(`DELIVERY is "exactly-once": ${kind} does not support it; write at-least-once`);
}
