import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { snappyBlock, writeRequest } from "./write-request.ts";

/** Snappy's block format by its specification, for literals only; anything else is an error here. */
function unpack(block: Buffer): Buffer {
  const { value: length, next } = readVarint(block, 0);
  const parts: Buffer[] = [];
  for (let at = next; at < block.length; ) {
    const tag = block[at]!;
    assert.equal(tag & 3, 0, "a literal");
    const code = tag >> 2;
    const bytes = code < 60 ? 0 : code - 59;
    const size = (code < 60 ? code : block.readUIntLE(at + 1, bytes)) + 1;
    parts.push(block.subarray(at + 1 + bytes, at + 1 + bytes + size));
    at += 1 + bytes + size;
  }
  const content = Buffer.concat(parts);
  assert.equal(content.length, length);
  return content;
}

function readVarint(bytes: Buffer, from: number): { value: number; next: number } {
  let value = 0;
  for (let at = from, weight = 1; ; at += 1, weight *= 128) {
    value += (bytes[at]! & 0x7f) * weight;
    if (bytes[at]! < 0x80) return { value, next: at + 1 };
  }
}

/** The fields of a Protocol Buffers message, in their order. */
function fieldsOf(bytes: Buffer): [number, Buffer | number][] {
  const fields: [number, Buffer | number][] = [];
  for (let at = 0; at < bytes.length; ) {
    const { value: tag, next } = readVarint(bytes, at);
    const [number, wireType] = [tag >> 3, tag & 7];
    if (wireType === 1) {
      fields.push([number, bytes.readDoubleLE(next)]);
      at = next + 8;
      continue;
    }
    const { value, next: end } = readVarint(bytes, next);
    fields.push([number, wireType === 0 ? value : bytes.subarray(end, end + value)]);
    at = wireType === 0 ? end : end + value;
  }
  return fields;
}

function seriesIn(request: Buffer) {
  return fieldsOf(request).map(([, series]) => {
    const parts = fieldsOf(series as Buffer);
    const labels = parts
      .filter(([number]) => number === 1)
      .map(([, label]) => fieldsOf(label as Buffer).map(([, text]) => String(text)));
    const samples = parts.filter(([number]) => number === 2).map(([, sample]) => fieldsOf(sample as Buffer));
    return { labels, samples };
  });
}

test("A21 any bytes survive a round trip through a Snappy block", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => unpack(snappyBlock(Buffer.from(bytes))).equals(bytes)),
  );
  for (const length of [0, 1, 65_535, 65_536, 65_537, 200_000]) {
    const bytes = Buffer.alloc(length, "abc");
    assert.ok(unpack(snappyBlock(bytes)).equals(bytes), String(length));
  }
});

test("A21 a write request has one series per sample, with sorted labels and the name of a scrape", () => {
  const families = [
    { name: "sent", type: "counter", values: [{ value: 5, labels: { z: "ä", a: "", le: 0.5 } }] },
    { name: "took", type: "histogram", values: [{ value: 1.5, labels: {}, metricName: "took_sum" }] },
  ];
  assert.deepEqual(seriesIn(writeRequest(families, { job: "j", instance: "i" }, 1_700_000_000_123)), [
    {
      labels: [
        ["__name__", "sent_total"],
        ["instance", "i"],
        ["job", "j"],
        ["le", "0.5"],
        ["z", "ä"],
      ],
      samples: [
        [
          [1, 5],
          [2, 1_700_000_000_123],
        ],
      ],
    },
    {
      labels: [
        ["__name__", "took_sum"],
        ["instance", "i"],
        ["job", "j"],
      ],
      samples: [
        [
          [1, 1.5],
          [2, 1_700_000_000_123],
        ],
      ],
    },
  ]);
});
