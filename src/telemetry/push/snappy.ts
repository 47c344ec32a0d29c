/** Snappy's block format with literals only: it compresses nothing, but every receiver accepts it. */

const LITERAL_MAX = 65_536;
/** The tag of a literal whose length is in the next two bytes. */
const LITERAL_OF_TWO_BYTES = 61 << 2;

/** Wraps the bytes as a Snappy block. */
export function snappyBlock(bytes: Buffer): Buffer {
  const parts = [varint(bytes.length)];
  for (let from = 0; from < bytes.length; from += LITERAL_MAX) {
    const literal = bytes.subarray(from, from + LITERAL_MAX);
    const head = Buffer.from([LITERAL_OF_TWO_BYTES, 0, 0]);
    head.writeUInt16LE(literal.length - 1, 1);
    parts.push(head, literal);
  }
  return Buffer.concat(parts);
}

/** Protocol Buffers' varint: seven bits per byte, lowest first; the highest bit is set while more follow. */
export function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  while (rest >= 0x80) {
    bytes.push((rest % 0x80) | 0x80);
    rest = Math.floor(rest / 0x80);
  }
  bytes.push(rest);
  return Buffer.from(bytes);
}
