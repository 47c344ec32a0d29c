import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { gunzipSync } from "node:zlib";

export interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** Unpacked, where it was packed by gzip. */
  readonly body: Buffer;
}

/** A status to answer with, or silence. An answer that refuses repeats the request's headers, as careless proxies do. */
export type Manner = number | "silent";

/** Somebody who is pushed to: keeps what comes, and behaves as badly as the test wants. */
export interface Receiver extends AsyncDisposable {
  readonly url: string;
  readonly requests: readonly Received[];
  /** From now on. 200 at the beginning. */
  manner: Manner;
}

export async function startReceiver(port = 0): Promise<Receiver> {
  const requests: Received[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { manner } = receiver;
    const packed = Buffer.concat(chunks);
    const body = request.headers["content-encoding"] === "gzip" ? gunzipSync(packed) : packed;
    requests.push({ path: request.url ?? "", headers: request.headers, body });
    if (manner === "silent") return;
    response
      .writeHead(manner, { "content-type": "application/json" })
      .end(JSON.stringify(manner < 300 ? {} : request.headers));
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const receiver: Receiver = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    manner: 200,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return receiver;
}
