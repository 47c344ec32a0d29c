/** A family of samples, as the registry returns it. */
export interface MetricFamily {
  readonly name: string;
  readonly type: string;
  readonly values: readonly {
    readonly value: number;
    readonly labels: Readonly<Record<string, string | number | undefined>>;
    readonly metricName?: string;
  }[];
}

const LENGTH_DELIMITED = 2;
const FIXED_64 = 1;
const VARINT = 0;

/**
 * The WriteRequest of Prometheus remote write 1.0 in Protocol Buffers, with one series per sample. Labels are sorted by
 * name, as receivers require.
 */
export function writeRequest(
  families: readonly MetricFamily[],
  own: Readonly<Record<string, string>>,
  atMs: number,
): Buffer {
  const series = families.flatMap(({ name, type, values }) =>
    values.map(({ labels, value, metricName }) => {
      const sampleName = type === "counter" ? `${metricName ?? name}_total` : (metricName ?? name);
      return field(1, timeSeries({ ...own, ...labels, __name__: sampleName }, value, atMs));
    }),
  );
  return Buffer.concat(series);
}

function timeSeries(labels: Readonly<Record<string, unknown>>, value: number, atMs: number): Buffer {
  const names = Object.keys(labels)
    .filter((name) => labels[name] !== undefined && labels[name] !== "")
    .sort();
  return Buffer.concat([
    ...names.map((name) => field(1, label(name, String(labels[name])))),
    field(2, sample(value, atMs)),
  ]);
}

function label(name: string, value: string): Buffer {
  return Buffer.concat([field(1, Buffer.from(name)), field(2, Buffer.from(value))]);
}

function sample(value: number, atMs: number): Buffer {
  const double = Buffer.alloc(8);
  double.writeDoubleLE(value);
  return Buffer.concat([tag(1, FIXED_64), double, tag(2, VARINT), varint(atMs)]);
}

function field(number: number, content: Buffer): Buffer {
  return Buffer.concat([tag(number, LENGTH_DELIMITED), varint(content.length), content]);
}

function tag(number: number, wireType: number): Buffer {
  return varint((number << 3) | wireType);
}

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
function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  while (rest >= 0x80) {
    bytes.push((rest % 0x80) | 0x80);
    rest = Math.floor(rest / 0x80);
  }
  bytes.push(rest);
  return Buffer.from(bytes);
}
