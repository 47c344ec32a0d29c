import type { Socket } from "node:net";
import type { ChannelModel, ConfirmChannel } from "amqplib";
import { optionalClient } from "../../core/optional-client.ts";
import type { RabbitHost, RabbitSettings } from "./rabbitmq-config.ts";

/** The client library. */
export type Amqp = typeof import("amqplib");

export const loadAmqp: () => Promise<Amqp> = optionalClient(
  "the RabbitMQ client",
  "amqplib@2",
  () => import("amqplib"),
);

/** A connection with one confirm channel. */
export interface Wire {
  readonly model: ChannelModel;
  readonly channel: ConfirmChannel;
  /** The negotiated maximum frame size. */
  readonly frameBytesMax: number;
}

/** The client's internal state that this adapter needs. */
interface ConnectionInside {
  readonly stream: Socket & { readonly encrypted?: boolean };
  readonly frameMax: number;
}

/** The number of buffered frames, of at most 128 kB each, after which the client asks for a pause. */
const BUFFERED_FRAMES_MAX = 512;

/** Logs in at this host and checks or declares the exchange. Rejects with the client's error. */
export async function openWire(amqp: Amqp, settings: RabbitSettings, at: RabbitHost): Promise<Wire> {
  const model = await amqp.connect(
    {
      protocol: settings.tls === null ? "amqp" : "amqps",
      hostname: at.host,
      port: at.port,
      username: settings.username,
      password: settings.password,
      // The client expects a URL-encoded value.
      vhost: encodeURIComponent(settings.vhost),
      heartbeat: settings.heartbeatSeconds,
    },
    {
      ...settings.tls,
      noDelay: true,
      timeout: Math.max(1, Math.floor(settings.connectTimeoutMs / settings.hosts.length)),
      clientProperties: { connection_name: settings.connectionName },
    },
  );
  // The channel reports the end of the connection. Without a listener here an error would end the process.
  model.on("error", () => {});
  try {
    const channel = await model.createConfirmChannel({ highWaterMark: BUFFERED_FRAMES_MAX });
    channel.on("error", () => {});
    await prepareExchange(channel, settings);
    return { model, channel, frameBytesMax: insideOf(model).frameMax };
  } catch (error) {
    destroyConnection(model);
    throw error;
  }
}

async function prepareExchange(channel: ConfirmChannel, settings: RabbitSettings): Promise<void> {
  const { exchange, isDeclared, queue } = settings;
  if (!isDeclared) {
    await channel.checkExchange(exchange);
    return;
  }
  await channel.assertExchange(exchange, "topic", { durable: true });
  if (queue === null) return;
  await channel.assertQueue(queue, { durable: true, arguments: { "x-queue-type": "quorum" } });
  await channel.bindQueue(queue, exchange, "#");
}

/**
 * Closes the connection at once. Unsent messages are never sent; the server may still process those that it has
 * received.
 */
export function destroyConnection(model: ChannelModel): void {
  const { stream } = insideOf(model);
  if (stream.destroyed) return;
  // A socket that is already ending cannot be reset and could stay open forever.
  if (stream.encrypted || stream.writableEnded) stream.destroy();
  else stream.resetAndDestroy();
  // The client reacts only to errors: without one it would continue its heartbeat.
  stream.emit("error", new Error("the connection was given up"));
}

function insideOf(model: ChannelModel): ConnectionInside {
  return model.connection as unknown as ConnectionInside;
}
