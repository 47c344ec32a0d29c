import { varint } from "./snappy.ts";

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
