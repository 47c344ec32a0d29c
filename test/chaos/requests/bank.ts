import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { systemClock } from "../../../src/core/clock.ts";
import { treatmentOf } from "./plan.ts";

export interface Transfer {
  readonly transfer: string;
}

/**
 * The provider: pays once per idempotency key, however often it is asked, and treats accounts as the plan says. It is
 * never killed, so what it counted is true.
 */
export class Bank implements AsyncDisposable {
  /** By idempotency key. */
  readonly transfers = new Map<string, Transfer>();
  /** How often each key came. */
  readonly calls = new Map<string, number>();
  /** Whoever asked was gone before the answer. */
  cutOff = 0;
  /** Asked again for what was paid already. */
  repeated = 0;
  open = 0;
  readonly #server: Server;
  readonly #ended = new AbortController();

  private constructor() {
    this.#server = createServer((request, response) => void this.#answer(request, response));
  }

  static async open(): Promise<Bank> {
    const bank = new Bank();
    bank.#server.listen(0, "127.0.0.1");
    await once(bank.#server, "listening");
    return bank;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended.abort();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.open += 1;
    response.on("close", () => {
      this.open -= 1;
      if (!response.writableFinished) this.cutOff += 1;
    });
    const body = await bodyOf(request).catch(() => null);
    if (body === null) return;
    const key = String(request.headers["idempotency-key"]);
    const { account } = JSON.parse(body) as { readonly account: string };
    await this.#treat(key, account, response);
  }

  async #treat(key: string, account: string, response: ServerResponse): Promise<void> {
    const calls = (this.calls.get(key) ?? 0) + 1;
    this.calls.set(key, calls);
    const treatment = treatmentOf(account);
    if (treatment.kind === "closed") return send(response, 422, { error: "closed" });
    if (treatment.kind === "never" || (treatment.kind === "busy" && calls <= treatment.times)) {
      if (calls % 2 === 0) response.setHeader("retry-after", "1");
      return send(response, 503, { error: "busy" });
    }
    if (this.transfers.has(key)) this.repeated += 1;
    const transfer = this.transfers.get(key) ?? { transfer: `t-${this.transfers.size + 1}` };
    this.transfers.set(key, transfer);
    if (treatment.kind === "torn" && calls === 1) return void response.destroy();
    if (treatment.kind === "slow") await systemClock.sleep(treatment.ms, this.#ended.signal);
    send(response, 200, transfer);
  }
}

function send(response: ServerResponse, status: number, body: object): void {
  response.statusCode = status;
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify(body));
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("utf8");
}
