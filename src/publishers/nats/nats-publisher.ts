import { RelayError } from "../../core/errors.ts";
import type { Message } from "../../core/event.ts";
import type { Publisher, Report } from "../../ports/publisher.ts";
import { connectAny, loadNats, type Nats } from "./nats-client.ts";
import { type NatsPublisherOptions, type NatsSettings, natsSettings } from "./nats-config.ts";
import { NatsDelivery } from "./nats-delivery.ts";
import { unreachable } from "./nats-errors.ts";
import { NatsLink } from "./nats-link.ts";
import { NatsLinkPool } from "./nats-link-pool.ts";

export type { NatsPublisherOptions, NatsTls } from "./nats-config.ts";

/** Delivers to the streams of NATS JetStream. Connects with the first event. */
export function natsPublisher(options: NatsPublisherOptions): Publisher {
  const publishing = new NatsPublishing(natsSettings(options));
  return {
    name: publishing.settings.name,
    capabilities: { keyOrderInBatch: true, deduplicates: true },
    publish: (batch, report, signal) => publishing.publish(batch, report, signal),
    close: () => publishing.close(),
  };
}

class NatsPublishing {
  readonly settings: NatsSettings;
  readonly #pool: NatsLinkPool;
  #connects = 0;

  constructor(settings: NatsSettings) {
    this.settings = settings;
    this.#pool = new NatsLinkPool(async (signal) => {
      const nats = await loadNats();
      // A server that takes connections may still be sick, so every search begins at the next one.
      const connection = await connectAny(nats, settings, this.#connects++, signal);
      return new NatsLink(nats, connection, settings);
    });
  }

  async publish(batch: readonly Message[], report: Report, signal: AbortSignal): Promise<void> {
    if (batch.length === 0) return;
    const nats = await loadNats();
    let link: NatsLink;
    try {
      link = await this.#pool.take(signal);
    } catch (error) {
      if (signal.aborted) throw this.#givenUp();
      const failed = unreachable(this.settings, error);
      for (const index of batch.keys()) report(index, failed);
      return;
    }
    try {
      await this.#deliver(nats, link, batch, report, signal);
    } finally {
      this.#pool.giveBack(link);
    }
  }

  async close(): Promise<void> {
    await this.#pool.close();
  }

  async #deliver(
    nats: Nats,
    link: NatsLink,
    batch: readonly Message[],
    report: Report,
    signal: AbortSignal,
  ): Promise<void> {
    const { promise: aborted, reject } = Promise.withResolvers<never>();
    aborted.catch(() => {});
    let destroyed: Promise<void> | undefined;
    const abort = () => {
      destroyed = link.destroy();
      reject(this.#givenUp());
    };
    signal.addEventListener("abort", abort, { once: true });
    const lost = link.lost.then((error) => {
      throw error;
    });
    lost.catch(() => {});
    const delivery = new NatsDelivery({ nats, settings: this.settings, link, report }, batch);
    try {
      await Promise.race([delivery.run(), lost, aborted]);
    } finally {
      signal.removeEventListener("abort", abort);
      // What was given up must not arrive later, so the connection has to be gone first.
      await destroyed;
    }
  }

  #givenUp(): RelayError {
    return new RelayError("PUBLISH_UNKNOWN", `the publish to "${this.settings.name}" was given up.`);
  }
}
