import { once } from "node:events";
import { createServer, connect as dial, type Socket } from "node:net";
import { freePort } from "./free-port.ts";
import { TransactionWatch } from "./kafka-proxy-watch.ts";
import {
  answerToEnd,
  correlationIdOf,
  errorCodeOf,
  frameSplitter,
  type KafkaRequest,
  parseRequest,
} from "./kafka-proxy-wire.ts";

/** What becomes of a request. */
export type Fate =
  | { readonly kind: "pass" }
  /**
   * Kept back for so long, and whatever comes after it on the same connection with it, as on a network. Then it goes to
   * the broker, whether its client still waits or not. With `reset` the client loses its connection at once.
   */
  | { readonly kind: "hold"; readonly ms: number; readonly reset: boolean }
  /** Takes effect, but there is no answer: the client waits in vain, or loses its connection instead. */
  | { readonly kind: "lose-answer"; readonly reset: boolean }
  /** Never arrives; the client loses its connection. */
  | { readonly kind: "lose" }
  /** Never arrives; the client is answered with this error code, 0 for yes. Only for the end of a transaction. */
  | { readonly kind: "answer"; readonly code: number };

/** The port is the one at the client's end of the connection. */
export type Decide = (request: KafkaRequest, clientPort: number) => Fate;

export type KafkaProxyOptions = {
  readonly targetPort: number;
  /** Asked for every request of a transaction. Absent: all of them pass. */
  readonly decide?: Decide;
  /** Shared by the proxies of a cluster, so that it sees whole transactions. */
  readonly watch?: TransactionWatch;
};

/** Stands on 127.0.0.1 between Kafka's clients and one broker, understands requests and can mistreat them. */
export type KafkaProxy = AsyncDisposable & {
  readonly port: number;
  readonly watch: TransactionWatch;
  /** Clients that are connected. */
  readonly clientCount: number;
  /** Requests that wait for their time. */
  readonly heldCount: number;
  decide: Decide;
  /** What is kept back goes to the broker now. */
  release(): void;
  /** Every client loses its connection; what is kept back stays and arrives in its time. */
  cut(): void;
};

const pass: Fate = { kind: "pass" };

export async function startKafkaProxy(options: KafkaProxyOptions): Promise<KafkaProxy> {
  const { targetPort, decide = () => pass, watch = new TransactionWatch() } = options;
  const state: State = { brokerPort: targetPort, decide, watch };
  const connections = new Set<Connection>();
  const port = await freePort();
  const server = createServer((client) => {
    const upstream = dial(targetPort, "127.0.0.1");
    const connection = new Connection(client, upstream, state);
    connections.add(connection);
    upstream.on("close", () => connections.delete(connection));
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  return {
    port,
    watch,
    get clientCount() {
      return [...connections].filter(({ hasClient }) => hasClient).length;
    },
    get heldCount() {
      return [...connections].reduce((sum, connection) => sum + connection.heldCount, 0);
    },
    get decide() {
      return state.decide;
    },
    set decide(next) {
      state.decide = next;
    },
    release() {
      for (const connection of connections) connection.release();
    },
    cut() {
      for (const connection of connections) connection.resetClient();
    },
    async [Symbol.asyncDispose]() {
      const closed = once(server, "close");
      server.close();
      for (const connection of connections) connection.destroy();
      await closed;
    },
  };
}

type State = {
  readonly brokerPort: number;
  readonly watch: TransactionWatch;
  decide: Decide;
};
type Queued = {
  readonly request: KafkaRequest;
  readonly fate: Fate;
  dueMs: number;
  readonly sentCount: number;
};
type Unanswered = { readonly request: KafkaRequest; readonly fate: Fate; readonly wasLate: boolean };

/**
 * One client's connection and the one to the broker that belongs to it. The broker answers the requests of a connection
 * in their order, one at a time: hence one of its own for each client, which outlives the client while requests wait.
 */
class Connection {
  readonly #client: Socket;
  readonly #upstream: Socket;
  readonly #state: State;
  readonly #clientPort: number;
  readonly #queue: Queued[] = [];
  readonly #unanswered = new Map<number, Unanswered>();
  #timer: NodeJS.Timeout | undefined;

  constructor(client: Socket, upstream: Socket, state: State) {
    this.#client = client;
    this.#upstream = upstream;
    this.#state = state;
    this.#clientPort = client.remotePort ?? 0;
    for (const socket of [client, upstream]) {
      socket.setNoDelay(true);
      socket.on("error", () => {}); // the close that follows tells
    }
    client.on(
      "data",
      frameSplitter((frame) => this.#accept(parseRequest(frame))),
    );
    upstream.on(
      "data",
      frameSplitter((frame) => this.#answer(frame)),
    );
    client.on("drain", () => upstream.resume());
    client.on("close", () => this.#closeWhenIdle());
    upstream.on("close", () => this.#onBrokerGone());
  }

  get hasClient(): boolean {
    return !this.#client.destroyed;
  }

  get heldCount(): number {
    return this.#queue.length;
  }

  release(): void {
    for (const queued of this.#queue) queued.dueMs = 0;
    this.#pump();
  }

  resetClient(): void {
    this.#client.resetAndDestroy();
  }

  destroy(): void {
    this.#queue.length = 0;
    this.#client.destroy();
    this.#upstream.destroy();
  }

  #accept(request: KafkaRequest): void {
    // What follows on a connection that was reset has not been sent as far as anybody knows.
    if (this.#client.destroyed) return;
    const { decide, watch } = this.#state;
    const fate = request.name === null ? pass : decide(request, this.#clientPort);
    if (fate.kind === "lose") {
      this.resetClient();
      return;
    }
    if (fate.kind === "answer") {
      this.#client.write(answerToEnd(request, fate.code));
      return;
    }
    const dueMs = fate.kind === "hold" ? performance.now() + fate.ms : 0;
    const sentCount = request.name === null ? 0 : watch.sentCount(request.transactionalId);
    this.#queue.push({ request, fate, dueMs, sentCount });
    this.#pump();
    if (fate.kind === "hold" && fate.reset) this.resetClient();
  }

  #pump(): void {
    clearTimeout(this.#timer);
    for (let head = this.#queue[0]; head !== undefined; head = this.#queue[0]) {
      const waitMs = head.dueMs - performance.now();
      if (waitMs > 0) {
        this.#timer = setTimeout(() => this.#pump(), Math.ceil(waitMs));
        return;
      }
      this.#queue.shift();
      this.#forward(head);
    }
    this.#closeWhenIdle();
  }

  #forward({ request, fate, sentCount }: Queued): void {
    const { watch } = this.#state;
    const wasLate = this.#client.destroyed;
    if (wasLate) watch.sentLate(request, sentCount);
    else watch.sent(request, this.#clientPort);
    this.#unanswered.set(request.correlationId, { request, fate, wasLate });
    this.#upstream.write(request.frame);
  }

  #answer(frame: Buffer): void {
    const id = correlationIdOf(frame);
    const asked = this.#unanswered.get(id);
    this.#unanswered.delete(id);
    if (asked !== undefined) {
      const { request, fate, wasLate } = asked;
      const { watch, brokerPort } = this.#state;
      watch.answered(request, errorCodeOf(request, frame), { wasLate, brokerPort });
      if (fate.kind === "lose-answer") {
        if (fate.reset) this.resetClient();
        return;
      }
    }
    if (this.#client.destroyed) this.#closeWhenIdle();
    else if (!this.#client.write(frame)) this.#upstream.pause();
  }

  /** Without its client a connection lives until all that waits has been sent and answered. */
  #closeWhenIdle(): void {
    if (!this.#client.destroyed) return;
    this.#upstream.resume();
    if (this.#queue.length === 0 && this.#unanswered.size === 0) this.#upstream.destroy();
  }

  #onBrokerGone(): void {
    clearTimeout(this.#timer);
    for (const _ of this.#queue.splice(0)) this.#state.watch.perished();
    this.#client.resetAndDestroy();
  }
}
