import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";

export interface Visited {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
  /** The code of a problem; empty for an answer that is none. */
  readonly code: string;
}

interface Visit {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** The address to come from, one of 127.0.0.0/8. */
  readonly from?: string;
}

/** Asks with any headers, which a fetch does not send, and takes the first answer that comes. */
export async function visit(
  address: string,
  { body, from, headers = {}, method = "GET" }: Visit = {},
): Promise<Visited> {
  const asking = request(address, {
    method,
    headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
    ...(from === undefined ? {} : { localAddress: from }),
    agent: false,
  });
  asking.end(body === undefined ? undefined : JSON.stringify(body));
  const [response] = (await once(asking, "response")) as [IncomingMessage];
  const { statusCode: status = 0 } = response;
  // A stream has no end: that it was let in is all there is to see.
  if (response.headers["content-type"]?.startsWith("text/event-stream")) {
    asking.destroy();
    return { status, headers: response.headers, body: "", code: "" };
  }
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString();
  const isProblem = response.headers["content-type"]?.startsWith("application/problem+json") === true;
  const code = isProblem && text !== "" ? (JSON.parse(text) as { code: string }).code : "";
  return { status, headers: response.headers, body: text, code };
}

/** What a browser would send back: the cookies that an answer has set. */
export function cookiesOf({ headers }: Visited): string {
  return (headers["set-cookie"] ?? []).map((cookie) => cookie.split(";")[0]).join("; ");
}
