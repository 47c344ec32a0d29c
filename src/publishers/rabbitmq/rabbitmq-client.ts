import type { Socket } from "node:net";
import type { ChannelModel, ConfirmChannel } from "amqplib";
import { RelayError } from "../../core/errors.ts";
import type { RabbitHost, RabbitSettings } from "./rabbitmq-config.ts";

export type Amqp = typeof import("amqplib");

const INSTALL = "npm install amqplib@2.3.1";

let loading: Promise<Amqp> | undefined;

/** The client is an optional peer dependency: without it the error says what to install. */
export function loadAmqp(): Promise<Amqp> {
  loading ??= import("amqplib").catch((cause: unknown) => {
    throw new RelayError("CONFIG_INVALID", `the RabbitMQ client is missing, install it: ${INSTALL}.`, { cause });
  });
  return loading;
}

/** A connection with a channel of its own that confirms what it takes. */
export interface Wire {
  readonly model: ChannelModel;
  readonly channel: ConfirmChannel;
  /** The largest frame that both sides agreed on. */
  readonly frameBytesMax: number;
}

/** What the client keeps to itself and we cannot do without. */
interface ConnectionInside {
  readonly stream: Socket & { readonly encrypted?: boolean };
  readonly frameMax: number;
}

/** Frames that wait in the client's buffer before it asks for a pause: at most 128 kB each. */
const BUFFERED_FRAMES_MAX = 512;

/** Logs in at this host, and makes sure that the exchange is there. Rejects with what the client throws. */
export async function openWire(amqp: Amqp, settings: RabbitSettings, at: RabbitHost): Promise<Wire> {
  const model = await amqp.connect(
    {
      protocol: settings.tls === null ? "amqp" : "amqps",
      hostname: at.host,
      port: at.port,
      username: settings.username,
      password: settings.password,
      // The client takes what it is given for a part of an address.
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
  // Whoever uses the wire hears of its end by the channel's; without a listener an error would end the process.
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
 * Takes the connection away at once. What was not sent yet is not sent any more; what the server has received already
 * it may still carry out.
 */
export function destroyConnection(model: ChannelModel): void {
  const { stream } = insideOf(model);
  if (stream.destroyed) return;
  // A socket that is ending already cannot be reset any more and would stay for ever.
  if (stream.encrypted || stream.writableEnded) stream.destroy();
  else stream.resetAndDestroy();
  // The client listens to errors alone: without one it would go on with its heartbeat.
  stream.emit("error", new Error("the connection was given up"));
}

function insideOf(model: ChannelModel): ConnectionInside {
  return model.connection as unknown as ConnectionInside;
}
