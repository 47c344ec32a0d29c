import type { Socket } from "node:net";

const STATUS_LINE = Buffer.from("HTTP/1.");
const CONTINUE = " 100";
/** `HTTP/1.1 100` without its last digit: how much of it may be in the previous chunk. */
const CUT_MAX = "HTTP/1.1 10".length;
const TWO = 0x32;

/**
 * A server may send `100 Continue` before its response, and some always do, but the client closes the connection unless
 * it has requested it. The client ignores other statuses below 200. So this changes the last digit of incoming data:
 * `102 Processing` means the same, that the response will follow. A changed body does no harm, because bodies are not
 * used.
 */
export function passOverContinue<Connection extends Socket>(socket: Connection): Connection {
  const read = socket.read.bind(socket) as (size?: number) => unknown;
  let before: Buffer = Buffer.alloc(0);
  socket.read = (size?: number) => {
    const piece = read(size);
    if (!Buffer.isBuffer(piece)) return piece;
    const seen = Buffer.concat([before, piece]);
    for (const at of continuesIn(seen)) {
      // A status that was complete in the previous chunk is already changed.
      const digit = at - before.length;
      if (digit >= 0) piece[digit] = TWO;
    }
    before = Buffer.from(seen.subarray(-CUT_MAX));
    return piece;
  };
  return socket;
}

/** The positions of the last digit of each `HTTP/1.x 100`. */
function continuesIn(bytes: Buffer): number[] {
  const found: number[] = [];
  for (let at = bytes.indexOf(STATUS_LINE); at >= 0; at = bytes.indexOf(STATUS_LINE, at + 1)) {
    const code = at + STATUS_LINE.length + 1;
    if (bytes.toString("latin1", code, code + CONTINUE.length) === CONTINUE) found.push(code + CONTINUE.length - 1);
  }
  return found;
}
