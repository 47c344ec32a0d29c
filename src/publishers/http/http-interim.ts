import type { Socket } from "node:net";

const STATUS_LINE = Buffer.from("HTTP/1.");
const CONTINUE = " 100";
/** `HTTP/1.1 100` without its last digit: what of it may stand in the piece before. */
const CUT_MAX = "HTTP/1.1 10".length;
const TWO = 0x32;

/**
 * Any server may say `100 Continue` before its answer, and some always do; the client under us takes that for the end of
 * the connection unless it has asked for it. It passes over every other answer below 200, so the last digit is changed
 * on the way in: `102 Processing` says the same, that the answer is still to come. Bodies are thrown away anyway.
 */
export function passOverContinue<Connection extends Socket>(socket: Connection): Connection {
  const read = socket.read.bind(socket) as (size?: number) => unknown;
  let before: Buffer = Buffer.alloc(0);
  socket.read = (size?: number) => {
    const piece = read(size);
    if (!Buffer.isBuffer(piece)) return piece;
    const seen = Buffer.concat([before, piece]);
    for (const at of continuesIn(seen)) {
      // What was complete in the piece before is changed already.
      const digit = at - before.length;
      if (digit >= 0) piece[digit] = TWO;
    }
    before = Buffer.from(seen.subarray(-CUT_MAX));
    return piece;
  };
  return socket;
}

/** Where the last digit of each `HTTP/1.x 100` is. */
function continuesIn(bytes: Buffer): number[] {
  const found: number[] = [];
  for (let at = bytes.indexOf(STATUS_LINE); at >= 0; at = bytes.indexOf(STATUS_LINE, at + 1)) {
    const code = at + STATUS_LINE.length + 1;
    if (bytes.toString("latin1", code, code + CONTINUE.length) === CONTINUE) found.push(code + CONTINUE.length - 1);
  }
  return found;
}
