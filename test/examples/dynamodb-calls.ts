import { once } from "node:events";
import { createServer, request as forward, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";

/** Stands between functions and DynamoDB, and writes down the rights that they would need for what they ask. */
export interface DynamoDbCalls extends AsyncDisposable {
  readonly endpoint: string;
  /** `dynamodb:Query outbox/index/retries`. */
  readonly rights: ReadonlySet<string>;
}

interface Asked {
  readonly TableName?: string;
  readonly IndexName?: string;
  readonly RequestItems?: Readonly<Record<string, unknown>>;
  readonly TransactItems?: readonly Readonly<Record<string, { readonly TableName: string }>>[];
}

export async function startDynamoDbCalls(upstream: string): Promise<DynamoDbCalls> {
  const rights = new Set<string>();
  const { hostname, port } = new URL(upstream);
  const server = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray());
    const action = String(request.headers["x-amz-target"]).split(".").at(-1)!;
    for (const right of rightsFor(action, JSON.parse(body.toString()) as Asked)) rights.add(right);
    const { headers, method, url } = request;
    const onward = forward({ hostname, port, method, path: url, headers });
    onward.on("error", () => response.destroy());
    onward.end(body);
    const [answer] = (await once(onward, "response")) as [IncomingMessage];
    response.writeHead(answer.statusCode ?? 500, answer.headers);
    answer.pipe(response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    rights,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** A transaction is no right of its own: it needs those of what is in it. */
function rightsFor(action: string, { IndexName, RequestItems, TableName, TransactItems }: Asked): string[] {
  if (TransactItems !== undefined) {
    return TransactItems.flatMap((item) =>
      Object.entries(item).map(([kind, { TableName: table }]) => `dynamodb:${kind}Item ${table}`),
    );
  }
  if (RequestItems !== undefined) return Object.keys(RequestItems).map((table) => `dynamodb:${action} ${table}`);
  return [`dynamodb:${action} ${TableName}${IndexName === undefined ? "" : `/index/${IndexName}`}`];
}
