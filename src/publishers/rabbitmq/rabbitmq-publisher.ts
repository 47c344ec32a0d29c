import { unreachableError } from "../../core/connection-cause.ts";
import { RelayError } from "../../core/errors.ts";
import type { Message } from "../../core/event.ts";
import type { Obstacle, Publisher, Report } from "../../ports/publisher.ts";
import { loadAmqp } from "./rabbitmq-client.ts";
import { type RabbitPublisherOptions, type RabbitSettings, rabbitSettings } from "./rabbitmq-config.ts";
import { connectionReason, isMissing } from "./rabbitmq-errors.ts";
import type { RabbitLink } from "./rabbitmq-link.ts";
import { RabbitLinkPool } from "./rabbitmq-link-pool.ts";

export type { RabbitPublisherOptions, RabbitTls } from "./rabbitmq-config.ts";

/** Publishes to a RabbitMQ exchange. Connects with the first event. */
export function rabbitPublisher(options: RabbitPublisherOptions): Publisher {
  const settings = rabbitSettings(options);
  const delivery = new RabbitDelivery(settings);
  return {
    name: settings.name,
    // Messages that are in flight cannot be withdrawn when the server refuses an earlier one of the key.
    capabilities: { keyOrderInBatch: false, deduplicates: false, attributePrefix: "cloudEvents:" },
    publish: (batch, report, signal) => delivery.publish(batch, report, signal),
    examine: (signal) => examineRabbit(settings, signal),
    close: () => delivery.close(),
  };
}

class RabbitDelivery {
  readonly #settings: RabbitSettings;
  #pool: Promise<RabbitLinkPool> | null = null;

  constructor(settings: RabbitSettings) {
    this.#settings = settings;
  }

  async publish(batch: readonly Message[], report: Report, signal: AbortSignal): Promise<void> {
    if (batch.length === 0) return;
    this.#pool ??= loadAmqp().then((amqp) => new RabbitLinkPool(amqp, this.#settings));
    const pool = await this.#pool;
    const blockedBy = pool.blockedBy();
    if (blockedBy !== null) throw unreachableError(connectionReason(this.#settings, blockedBy), blockedBy);
    const link = await pool.take(signal).catch((error: unknown) => {
      throw unreachableError(connectionReason(this.#settings, error), error);
    });
    if (link === null) throw givenUp(this.#settings.name);
    try {
      await sendOver(link, batch, report, signal);
      if (signal.aborted) throw givenUp(this.#settings.name);
    } finally {
      pool.giveBack(link);
    }
  }

  async close(): Promise<void> {
    const pool = await this.#pool?.catch(() => null);
    await pool?.close();
  }
}

/** Destroys the connection when the signal aborts; then nothing more is reported. */
async function sendOver(
  link: RabbitLink,
  batch: readonly Message[],
  report: Report,
  signal: AbortSignal,
): Promise<void> {
  const abort = () => link.destroy();
  signal.addEventListener("abort", abort, { once: true });
  try {
    await link.send(batch, (index, outcome) => {
      if (!signal.aborted) report(index, outcome);
    });
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

function givenUp(name: string): RelayError {
  return new RelayError("PUBLISH_UNKNOWN", `the publish to "${name}" was given up.`);
}

/** Logs in at one of the hosts and checks the exchange. Declares nothing. */
async function examineRabbit(settings: RabbitSettings, signal: AbortSignal): Promise<readonly Obstacle[]> {
  const pool = new RabbitLinkPool(await loadAmqp(), { ...settings, isDeclared: false });
  try {
    const link = await pool.take(signal);
    if (link !== null) pool.giveBack(link);
    return [];
  } catch (error) {
    // The first publish declares it.
    if (settings.isDeclared && isMissing(error)) return [];
    return [{ severity: "error", reason: connectionReason(settings, error) }];
  } finally {
    await pool.close();
  }
}
