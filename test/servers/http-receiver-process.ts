// A receiver of events over HTTP in a process of its own. Arguments: its folder and its port. It writes down every
// request before it answers, so that what it acknowledged survives its end; `x-manner` of a request says how it behaves.
import { closeSync, openSync, writeSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { join } from "node:path";

const [folder = "", port = ""] = process.argv.slice(2);
const log = openSync(join(folder, "arrivals"), "a");

const server = createServer({ maxHeaderSize: 65_536 }, async (request, response) => {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of request) chunks.push(chunk as Buffer);
  } catch {
    return; // the sender gave up in the middle: nothing has arrived
  }
  if (request.method === "GET") {
    response.end("ready");
    return;
  }
  const manner = String(request.headers["x-manner"] ?? "");
  if (!isRefused(manner)) {
    const { headers, method, url } = request;
    const arrived = { method, url, headers, body: Buffer.concat(chunks).toString("base64") };
    writeSync(log, `${JSON.stringify(arrived)}\n`);
  }
  answer(request, response, manner);
});

/** `status:422`, `says:422:BASE64`, `endless:422`, `after:503:2`, `redirect:URL`, `hang`, `late:300`, `reset`, `half`, `long`, `garbage`, `interim`. */
function answer(request: IncomingMessage, response: ServerResponse, manner: string): void {
  const [kind, first = "", ...rest] = manner.split(":");
  if (kind === "status") response.writeHead(Number(first)).end("refused");
  else if (kind === "says") sayText(request, response, Number(first), Buffer.from(rest.join(":"), "base64"));
  else if (kind === "endless") sayForever(response.writeHead(Number(first)));
  else if (kind === "after") response.writeHead(Number(first), { "retry-after": rest.join(":") }).end();
  else if (kind === "redirect") response.writeHead(302, { location: [first, ...rest].join(":") }).end();
  else if (kind === "late") setTimeout(() => response.writeHead(200).end(), Number(first));
  else if (kind === "reset") request.socket.resetAndDestroy();
  else if (kind === "half") request.socket.end("HTTP/1.1 200 OK\r\ncontent-le");
  else if (kind === "garbage") request.socket.end("SSH-2.0-server\r\n\r\n");
  else if (kind === "interim") sayInterim(request);
  else if (kind === "long") response.writeHead(200).end(Buffer.alloc(1_000_000));
  else if (kind !== "hang") response.writeHead(204).end();
}

/** With the content type and the encoding that the request asks for. */
function sayText({ headers }: IncomingMessage, response: ServerResponse, status: number, body: Buffer): void {
  const type = String(headers["x-answer-type"] ?? "text/plain");
  const coding = String(headers["x-answer-coding"] ?? "identity");
  response.writeHead(status, { "content-type": type, "content-encoding": coding }).end(body);
}

/** A body without an end: as much as the other side takes. */
function sayForever(response: ServerResponse): void {
  const more = () => {
    while (!response.destroyed && response.write("no such customer. "));
  };
  response.on("drain", more);
  more();
}

/** Whatever may come before an answer, in pieces that cut it anywhere. */
function sayInterim({ socket }: IncomingMessage): void {
  const again = "HTTP/1.1 100 Continue\r\n\r\n";
  const text = `${again}HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n${again}${again}HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok`;
  const cuts = [0, 10, 11, 40, 76, 88, 90, text.length];
  const pieces = cuts.slice(1).map((end, index) => text.slice(cuts[index], end));
  const next = () => {
    const piece = pieces.shift();
    // Each in a packet of its own.
    if (piece !== undefined) socket.write(piece, () => setTimeout(next, 5));
  };
  next();
}

function isRefused(manner: string): boolean {
  return /^(?:status|says|endless|after|redirect)/.test(manner);
}

server.listen(Number(port), "127.0.0.1");
process.on("exit", () => closeSync(log));
