import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";

interface PayrollRequest {
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** The payroll system of the example: an HTTP endpoint that tests can make slow or broken for an employee. */
export interface PayrollDesk extends AsyncDisposable {
  readonly origin: string;
  readonly requests: readonly PayrollRequest[];
  /** From now on answers nothing about this employee; the function that it returns ends that. */
  holds(employee: string): () => void;
  /** From now on fails for this employee. */
  breaks(employee: string): void;
}

export async function startPayrollDesk(): Promise<PayrollDesk> {
  const requests: PayrollRequest[] = [];
  const held = new Map<string, Promise<void>>();
  const broken = new Set<string>();
  const server = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray());
    const { employee } = JSON.parse(body.toString()) as { employee: string };
    requests.push({ url: request.url ?? "", headers: request.headers, body });
    await held.get(employee);
    response.writeHead(broken.has(employee) ? 500 : 200).end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    holds(employee) {
      const { promise, resolve } = Promise.withResolvers<void>();
      held.set(employee, promise);
      return resolve;
    },
    breaks: (employee) => void broken.add(employee),
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
