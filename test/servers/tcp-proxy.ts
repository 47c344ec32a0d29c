import { once } from "node:events";
import { createServer, connect as dial, type Socket } from "node:net";
import { freePort } from "./free-port.ts";

/** A TCP proxy on 127.0.0.1 that can misbehave like a network. */
export type TcpProxy = AsyncDisposable & {
  readonly port: number;
  readonly targetPort: number;
  readonly connectionCount: number;
  /** Sends new connections to another server and destroys the existing ones. */
  retarget(port: number): void;
  /** Destroys all connections. */
  cut(): void;
  /** While true, new connections are reset at once. Existing ones stay: add a cut() for those. */
  refuse(on: boolean): void;
  /** While true, bytes are held back in both directions and no end of a connection is passed on; then all flows again. */
  blackhole(on: boolean): void;
  /** Delay of every chunk in each direction. */
  latencyMs: number;
};

type Flow = { readonly hold: () => void; readonly release: () => void };

export async function startTcpProxy(targetPort: number): Promise<TcpProxy> {
  const state = { targetPort, refusing: false, holding: false, latencyMs: 0 };
  const sockets = new Set<Socket>();
  const flows = new Set<Flow>();
  const port = await freePort();

  const join = (from: Socket, to: Socket): void => {
    sockets.add(from);
    const flow = startFlow(from, to, state);
    flows.add(flow);
    from.setNoDelay(true);
    from.on("error", () => {}); // the close that follows tells the other side
    from.on("close", () => {
      sockets.delete(from);
      flows.delete(flow);
      to.destroy();
    });
  };
  const server = createServer({ allowHalfOpen: true }, (client) => {
    if (state.refusing) {
      client.resetAndDestroy();
      return;
    }
    const upstream = dial({ port: state.targetPort, host: "127.0.0.1", allowHalfOpen: true });
    join(client, upstream);
    join(upstream, client);
  });
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  server.listen(port, "127.0.0.1");
  await once(server, "listening");

  return {
    port,
    get targetPort() {
      return state.targetPort;
    },
    get connectionCount() {
      return sockets.size / 2;
    },
    get latencyMs() {
      return state.latencyMs;
    },
    set latencyMs(value: number) {
      state.latencyMs = value;
    },
    retarget(next) {
      state.targetPort = next;
      cut();
    },
    cut,
    refuse(on) {
      state.refusing = on;
    },
    blackhole(on) {
      state.holding = on;
      for (const flow of flows) on ? flow.hold() : flow.release();
    },
    async [Symbol.asyncDispose]() {
      const closed = once(server, "close");
      server.close();
      cut();
      await closed;
    },
  };
}

/** One direction of a connection: a queue of chunks, each due at its time, so that a change of latency keeps the order. */
function startFlow(from: Socket, to: Socket, state: { holding: boolean; latencyMs: number }): Flow {
  const queue: { readonly chunk: Buffer | "end"; readonly dueMs: number }[] = [];
  let timer: NodeJS.Timeout | undefined;

  const pump = (): void => {
    clearTimeout(timer);
    for (let head = queue[0]; head && !state.holding && !to.destroyed; head = queue[0]) {
      const waitMs = head.dueMs - performance.now();
      if (waitMs > 0) {
        timer = setTimeout(pump, Math.ceil(waitMs));
        return;
      }
      queue.shift();
      if (head.chunk === "end") to.end();
      else if (!to.write(head.chunk)) from.pause();
    }
  };
  const accept = (chunk: Buffer | "end"): void => {
    queue.push({ chunk, dueMs: performance.now() + state.latencyMs });
    pump();
  };
  from.on("data", accept);
  from.on("end", () => accept("end"));
  from.on("close", () => clearTimeout(timer));
  to.on("drain", () => !state.holding && from.resume());
  if (state.holding) from.pause();
  return {
    hold: () => void from.pause(),
    release: () => {
      from.resume();
      pump();
    },
  };
}
