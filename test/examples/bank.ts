import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** The bank of the example: an HTTP endpoint that pays once per idempotency key. */
export interface Bank extends AsyncDisposable {
  readonly origin: string;
  /** The key of every request that arrived. */
  readonly asked: readonly string[];
  /** The number of the transfer of each key that was paid. */
  readonly paid: ReadonlyMap<string, number>;
  /** From now on it pays into this account and gives no answer; the function that it returns ends that. */
  falls(account: string): () => void;
}

export async function startBank(): Promise<Bank> {
  const asked: string[] = [];
  const paid = new Map<string, number>();
  const silent = new Set<string>();
  const server = createServer(async (request, response) => {
    const { account } = JSON.parse(Buffer.concat(await request.toArray()).toString()) as { account: string };
    const key = String(request.headers["idempotency-key"]);
    const isFirst = !asked.includes(key);
    asked.push(key);
    if (account.startsWith("closed-")) return void response.writeHead(422).end("the account is closed");
    if (account.startsWith("busy-") && isFirst) return void response.writeHead(429, { "retry-after": "1" }).end();
    if (!paid.has(key)) paid.set(key, paid.size + 1);
    if (silent.has(account)) return;
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ transfer: paid.get(key) }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    paid,
    falls(account) {
      silent.add(account);
      return () => silent.delete(account);
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
