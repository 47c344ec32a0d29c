import type { Dispatcher } from "undici";
import type { Answer } from "./http-errors.ts";
import type { Origin } from "./http-origins.ts";

/** An answer's body says nothing to us; a longer one than this is not even read to its end. */
const BODY_BYTES_MAX = 65_536;

export interface HttpRequest {
  readonly path: string;
  readonly method: string;
  readonly headers: readonly string[];
  readonly body: Buffer;
}

/** The requests of one publish that are under way. One list for all: a listener for each would cost more than the rest. */
export class Exchanges {
  readonly #open = new Set<Exchange>();

  /** Sends one request and waits for the whole answer, at most for this time. Never rejects. */
  send(origin: Origin, request: HttpRequest, timeoutMs: number): Promise<Answer> {
    return new Promise((resolve) => {
      const exchange = new Exchange((answer) => {
        this.#open.delete(exchange);
        resolve(answer);
      }, timeoutMs);
      this.#open.add(exchange);
      const { body, headers, method, path } = request;
      origin.pool.dispatch({ path, method, headers: headers as string[], body }, exchange);
    });
  }

  /** Ends the connections of all of them. */
  giveUp(): void {
    for (const exchange of this.#open) exchange.giveUp(new Error("the publish was given up"));
  }
}

/** One request on its way. The status line is the answer, whatever becomes of the body behind it. */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #resolve: (answer: Answer) => void;
  readonly #timer: NodeJS.Timeout;
  #controller: Dispatcher.DispatchController | null = null;
  #givenUp: Error | null = null;
  #answer: Answer | null = null;
  #bodyBytes = 0;

  constructor(resolve: (answer: Answer) => void, timeoutMs: number) {
    this.#resolve = resolve;
    this.#timer = setTimeout(() => this.giveUp(new Error(`nothing came within ${timeoutMs} ms`)), timeoutMs);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    // It was given up while its connection was being made: nothing of it is sent.
    if (this.#givenUp !== null) controller.abort(this.#givenUp);
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Readonly<Record<string, string | string[] | undefined>>,
  ): void {
    // Those below 200 only say that the answer is still to come.
    if (status < 200) return;
    const header = (name: string) => {
      const value = headers[name];
      return typeof value === "object" ? value[0] : value;
    };
    this.#answer = { kind: "answered", status, header };
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#bodyBytes += chunk.length;
    if (this.#bodyBytes > BODY_BYTES_MAX) controller.abort(new Error("the answer is too long"));
  }

  onResponseEnd(): void {
    this.#end(new Error("the answer ended before it began"));
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#end(error);
  }

  /** Ends the connection, so that what has not left yet never arrives. */
  giveUp(error: Error): void {
    this.#givenUp = error;
    if (this.#controller === null) this.#end(error);
    else this.#controller.abort(error);
  }

  #end(error: Error): void {
    clearTimeout(this.#timer);
    this.#resolve(this.#answer ?? { kind: "failed", error, wasSent: this.#controller !== null });
  }
}
