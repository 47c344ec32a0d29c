import { once } from "node:events";
import { connect, type Socket } from "node:net";
import {
  createFrameReader,
  decodeAnswers,
  encodeBatch,
  type Frame,
  type SinkAnswer,
  type SinkEvent,
} from "./sink-wire.ts";

export type { SinkAnswer, SinkEvent } from "./sink-wire.ts";

/** One lazily opened connection for any number of concurrent batches. */
export type SinkClient = {
  /**
   * Sends the events in their order and reports each answer as it comes. Resolves when all are answered; rejects when
   * the connection fails or is lost first. An abort with answers outstanding resets the connection, so that nothing
   * abandoned arrives later, and with it fails the other batches under way.
   */
  send(
    events: readonly SinkEvent[],
    onAnswer: (index: number, answer: SinkAnswer) => void,
    signal: AbortSignal,
  ): Promise<void>;
  close(): Promise<void>;
};

type Batch = {
  unanswered: number;
  isSent: boolean;
  readonly onAnswer: (index: number, answer: SinkAnswer) => void;
  readonly settle: (error?: unknown) => void;
};

export function connectSink(port: number): SinkClient {
  return new Client(port);
}

class Client implements SinkClient {
  readonly #port: number;
  readonly #batches = new Map<number, Batch>();
  #connection: Promise<Socket> | undefined;
  #socket: Socket | undefined;
  #lastBatchId = 0;
  #isClosed = false;

  constructor(port: number) {
    this.#port = port;
  }

  async send(
    events: readonly SinkEvent[],
    onAnswer: (index: number, answer: SinkAnswer) => void,
    signal: AbortSignal,
  ): Promise<void> {
    signal.throwIfAborted();
    if (this.#isClosed) throw new Error("the sink's client is closed");
    if (events.length === 0) return;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const batchId = ++this.#lastBatchId;
    const onAbort = () => {
      batch.settle(signal.reason);
      if (batch.isSent) this.#lose(new Error("another batch was aborted and its connection reset"));
    };
    const batch: Batch = {
      unanswered: events.length,
      isSent: false,
      onAnswer,
      settle: (error) => {
        if (!this.#batches.delete(batchId)) return;
        signal.removeEventListener("abort", onAbort);
        error === undefined ? resolve() : reject(error);
      },
    };
    this.#batches.set(batchId, batch);
    signal.addEventListener("abort", onAbort);
    this.#connect().then((socket) => {
      if (!this.#batches.has(batchId)) return;
      batch.isSent = true;
      socket.write(encodeBatch(batchId, events));
    }, batch.settle);
    return promise;
  }

  /** The batches sent on a connection are written in the order of the calls: promise reactions run in order. */
  #connect(): Promise<Socket> {
    this.#connection ??= this.#open();
    return this.#connection;
  }

  async #open(): Promise<Socket> {
    const socket = connect({ port: this.#port, host: "127.0.0.1", noDelay: true });
    this.#socket = socket;
    let cause: Error | undefined;
    socket.on("error", (error) => {
      cause = error;
    });
    socket.on(
      "data",
      createFrameReader((frame) => this.#receive(frame)),
    );
    socket.on("close", () => {
      if (this.#socket === socket) this.#lose(connectionError("lost", this.#port, cause));
    });
    try {
      await once(socket, "connect");
      return socket;
    } catch (error) {
      if (this.#socket === socket) this.#lose(connectionError("lost", this.#port, error));
      throw connectionError("refused", this.#port, error);
    }
  }

  #receive(frame: Frame): void {
    const { batchId, answers } = decodeAnswers(frame);
    const batch = this.#batches.get(batchId);
    if (!batch) return;
    for (const [index, answer] of answers) batch.onAnswer(index, answer);
    batch.unanswered -= answers.length;
    if (batch.unanswered === 0) batch.settle();
  }

  /** Forgets the connection. A reset, because a plain close would still deliver what the kernel has buffered. */
  #lose(error: Error): void {
    const socket = this.#socket;
    this.#socket = undefined;
    this.#connection = undefined;
    if (socket?.connecting) socket.destroy();
    else socket?.resetAndDestroy();
    for (const batch of [...this.#batches.values()]) if (batch.isSent) batch.settle(error);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const socket = this.#socket;
    const closed = new Promise<void>((resolve) => {
      if (!socket || socket.closed) resolve();
      else socket.once("close", () => resolve());
    });
    const error = new Error("the sink's client was closed");
    this.#lose(error);
    for (const batch of [...this.#batches.values()]) batch.settle(error);
    await closed;
  }
}

function connectionError(what: "lost" | "refused", port: number, cause: unknown): Error {
  const detail = cause instanceof Error ? `: ${cause.message}` : "";
  return new Error(`the connection to the sink on port ${port} was ${what}${detail}`, { cause });
}
