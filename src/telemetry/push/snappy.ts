/** Snappy's block format with literals alone: nothing gets smaller, but every reader takes it. */

const LITERAL_MAX = 65_536;
/** The tag of a literal whose length stands in the two bytes behind it. */
const LITERAL_OF_TWO_BYTES = 61 << 2;

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

/** Seven bits a byte, the lowest first, the highest bit set while more follow; as Protocol Buffers have it too. */
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
