import type { Dispatcher } from "undici";
import { KEPT_BYTES_MAX } from "./http-answer.ts";
import type { Answer } from "./http-errors.ts";
import type { Origin } from "./http-origins.ts";

/** A body is read to the end so that its connection can be reused. Beyond this size a new connection is cheaper. */
const BODY_BYTES_MAX = 65_536;

/** One request. */
export interface HttpRequest {
  readonly path: string;
  readonly method: string;
  readonly headers: readonly string[];
  readonly body: Buffer;
}

/**
 * The running requests of one publish. One list for all, because an abort listener per request would cost more than the
 * request itself.
 */
export class Exchanges {
  readonly #open = new Set<Exchange>();

  /** Sends one request and waits for the whole response, at most for this time. Never rejects. */
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

  /** Aborts all requests by closing their connections. */
  giveUp(): void {
    for (const exchange of this.#open) exchange.giveUp(new Error("the publish was given up"));
  }
}

/** One running request. The status line decides the outcome, even if the body breaks off. */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #resolve: (answer: Answer) => void;
  readonly #timer: NodeJS.Timeout;
  #controller: Dispatcher.DispatchController | null = null;
  #givenUp: Error | null = null;
  #answer: Omit<Extract<Answer, { kind: "answered" }>, "body"> | null = null;
  #bodyBytes = 0;
  #kept: Buffer[] = [];

  constructor(resolve: (answer: Answer) => void, timeoutMs: number) {
    this.#resolve = resolve;
    this.#timer = setTimeout(() => this.giveUp(new Error(`no response within ${timeoutMs} ms`)), timeoutMs);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    // It was aborted while the connection was being opened: nothing is sent.
    if (this.#givenUp !== null) controller.abort(this.#givenUp);
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Readonly<Record<string, string | string[] | undefined>>,
  ): void {
    // A status below 200 only announces the response.
    if (status < 200) return;
    const header = (name: string) => {
      const value = headers[name];
      return typeof value === "object" ? value[0] : value;
    };
    this.#answer = { kind: "answered", status, header };
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    const isRefusal = this.#answer !== null && this.#answer.status >= 300;
    // Copy the bytes: the chunk is a view of a buffer that may be much larger.
    if (isRefusal && this.#bodyBytes < KEPT_BYTES_MAX) {
      this.#kept.push(Buffer.from(chunk.subarray(0, KEPT_BYTES_MAX - this.#bodyBytes)));
    }
    this.#bodyBytes += chunk.length;
    if (this.#bodyBytes > BODY_BYTES_MAX) controller.abort(new Error("the response is too long"));
  }

  onResponseEnd(): void {
    this.#end(new Error("the connection ended before a response"));
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#end(error);
  }

  /** Closes the connection, so that unsent data never arrives. */
  giveUp(error: Error): void {
    this.#givenUp = error;
    if (this.#controller === null) this.#end(error);
    else this.#controller.abort(error);
  }

  #end(error: Error): void {
    clearTimeout(this.#timer);
    const answered = this.#answer === null ? null : { ...this.#answer, body: Buffer.concat(this.#kept) };
    this.#resolve(answered ?? { kind: "failed", error, wasSent: this.#controller !== null });
  }
}
