import type { NatsConnection } from "@nats-io/transport-node";
import { orAborted } from "../../core/clock.ts";
import { unreachable } from "../../core/connection-cause.ts";
import { RelayError, reasonOf } from "../../core/errors.ts";
import type { Obstacle, Publisher } from "../../ports/publisher.ts";
import { connectAny, loadNats, type Nats } from "./nats-client.ts";
import { describeServers, type NatsPublisherOptions, type NatsSettings, natsSettings } from "./nats-config.ts";
import { NatsDelivery } from "./nats-delivery.ts";
import { connectionReason } from "./nats-errors.ts";
import { NatsLink, NatsLinkPool } from "./nats-link.ts";

export type { NatsPublisherOptions, NatsTls } from "./nats-config.ts";

/** Publishes to NATS JetStream. Connects with the first event. */
export function natsPublisher(options: NatsPublisherOptions): Publisher {
  const publishing = new NatsPublishing(natsSettings(options));
  return {
    name: publishing.settings.name,
    capabilities: { keyOrderInBatch: true, deduplicates: true, timesRequests: true },
    publish: (...args) => publishing.publish(...args),
    examine: (signal) => examineNats(publishing.settings, signal),
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
      // A server that accepts connections may still be unhealthy, so every search starts at the next one.
      const connection = await connectAny(nats, settings, this.#connects++, signal);
      return new NatsLink(nats, connection, settings);
    });
  }

  async publish(...args: Parameters<Publisher["publish"]>): Promise<void> {
    const [batch, report, signal] = args;
    if (batch.length === 0) return;
    const nats = await loadNats();
    let link: NatsLink;
    try {
      link = await this.#pool.take(signal);
    } catch (error) {
      if (signal.aborted) throw this.#givenUp();
      const failed = unreachable(connectionReason(this.settings, error), error);
      for (const index of batch.keys()) report(index, failed);
      return;
    }
    try {
      await this.#deliver(nats, link, ...args);
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
    ...[batch, report, signal, timer]: Parameters<Publisher["publish"]>
  ): Promise<void> {
    let destroyed: Promise<void> | undefined;
    const lost = link.lost.then((error) => {
      throw error;
    });
    lost.catch(() => {});
    const delivery = new NatsDelivery({ nats, settings: this.settings, link, report, timer }, batch);
    try {
      await orAborted(Promise.race([delivery.run(), lost]), signal, () => {
        destroyed = link.destroy();
        return this.#givenUp();
      });
    } finally {
      delivery.giveUp();
      // An aborted publish must not arrive later, so wait until its connection is closed.
      await destroyed;
    }
  }

  #givenUp(): RelayError {
    return new RelayError("PUBLISH_UNKNOWN", `the publish to "${this.settings.name}" was given up.`);
  }
}

interface ApiAnswer {
  readonly error?: { readonly code?: number; readonly description?: string };
}

/** Logs in at one of the servers and checks JetStream and the stream. */
async function examineNats(settings: NatsSettings, signal: AbortSignal): Promise<readonly Obstacle[]> {
  const nats = await loadNats();
  let connection: NatsConnection;
  try {
    connection = await connectAny(nats, settings, 0, signal);
  } catch (error) {
    return [{ severity: "error", reason: connectionReason(settings, error) }];
  }
  try {
    const reason = await streamFault(nats, connection, settings);
    return reason === null ? [] : [{ severity: "error", reason }];
  } finally {
    await connection.close();
  }
}

async function streamFault(nats: Nats, connection: NatsConnection, settings: NatsSettings): Promise<string | null> {
  const { connectTimeoutMs: timeout, servers, stream } = settings;
  const where = `NATS at ${describeServers(servers)}`;
  try {
    const subject = stream === null ? "$JS.API.INFO" : `$JS.API.STREAM.INFO.${stream}`;
    const { error } = (await connection.request(subject, "", { timeout })).json<ApiAnswer>();
    if (error === undefined) return null;
    if (error.code === 404 && stream !== null) return `${where}: the stream "${stream}" does not exist: create it`;
    return `${where}: ${error.description ?? "JetStream returned an error"}`;
  } catch (error) {
    const cause = error instanceof Error ? (error.cause ?? error) : error;
    // A user may be allowed to publish but not to query: then only a publish can show a fault.
    if (cause instanceof nats.PermissionViolationError || error instanceof nats.PermissionViolationError) return null;
    if (hasNoResponders(nats, error, cause)) return `${where}: JetStream is not enabled: enable it on the server`;
    return `${where}: JetStream does not answer: ${reasonOf(error)}`;
  }
}

function hasNoResponders(nats: Nats, ...errors: readonly unknown[]): boolean {
  return errors.some((error) => error instanceof nats.NoRespondersError);
}
