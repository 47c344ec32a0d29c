import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { ProvedEvent } from "./source-kinds.ts";

export interface Arrival extends ProvedEvent {
  readonly atMs: number;
  /** False when its sender was kept waiting for the answer, and may have given up. */
  readonly isAnswered: boolean;
}

/** A webhook that counts what arrives. An event counts as soon as it is there, whether its sender hears of it or not. */
export interface CountingReceiver extends AsyncDisposable {
  readonly url: string;
  readonly arrivals: readonly Arrival[];
  /** Answers nothing until it is over, as a broker that is blocked. */
  block(): void;
  unblock(): void;
}

export async function startCountingReceiver(): Promise<CountingReceiver> {
  const arrivals: Arrival[] = [];
  let waiting: ServerResponse[] | null = null;
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    let body = "";
    for await (const part of request.setEncoding("utf8")) body += part;
    const { key, number } = JSON.parse(body) as ProvedEvent;
    arrivals.push({ key, number, atMs: performance.now(), isAnswered: waiting === null });
    if (waiting === null) response.end();
    else waiting.push(response);
  };
  const server = createServer((request, response) => {
    // A sender that is killed in the middle of its request has not delivered anything.
    void answer(request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    arrivals,
    block() {
      waiting ??= [];
    },
    unblock() {
      for (const response of waiting ?? []) response.end();
      waiting = null;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
