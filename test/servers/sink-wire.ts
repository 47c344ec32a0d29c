// What the sink and its client say to each other. A frame is a JSON head and a binary tail, so that a batch costs one
// stringify and one parse and payloads travel as they are:
//   u32 length of all that follows | u32 length of the head | head | tail

export type SinkEvent = {
  readonly id: string;
  readonly topic: string;
  readonly key: string | null;
  readonly payload: Buffer;
  readonly headers: Readonly<Record<string, string>>;
};

export type SinkAnswer =
  | { readonly kind: "ok" }
  | { readonly kind: "retry"; readonly reason: string; readonly afterMs?: number; readonly scope?: "topic" }
  | { readonly kind: "reject"; readonly reason: string; readonly scope?: "topic" };

type EventHead = [id: string, topic: string, key: string | null, headers: Record<string, string>, payloadBytes: number];
type BatchHead = [batchId: number, events: EventHead[]];
/** A bare index means "ok", which is nearly every answer. */
export type IndexedAnswer = number | [index: number, answer: SinkAnswer];
type AnswersHead = [batchId: number, answers: IndexedAnswer[]];

export function encodeBatch(batchId: number, events: readonly SinkEvent[]): Buffer {
  const heads = events.map((e) => [e.id, e.topic, e.key, e.headers, e.payload.length]);
  return encodeFrame(
    [batchId, heads],
    events.map((event) => event.payload),
  );
}

export function decodeBatch({ head, tail }: Frame): { batchId: number; events: SinkEvent[] } {
  const [batchId, heads] = head as BatchHead;
  let at = 0;
  const events = heads.map(([id, topic, key, headers, payloadBytes]) => {
    const payload = tail.subarray(at, at + payloadBytes);
    at += payloadBytes;
    return { id, topic, key, headers, payload };
  });
  return { batchId, events };
}

export function encodeAnswers(batchId: number, answers: readonly IndexedAnswer[]): Buffer {
  return encodeFrame([batchId, answers], []);
}

export function decodeAnswers({ head }: Frame): { batchId: number; answers: [number, SinkAnswer][] } {
  const [batchId, answers] = head as AnswersHead;
  return { batchId, answers: answers.map((entry) => (typeof entry === "number" ? [entry, { kind: "ok" }] : entry)) };
}

export type Frame = { readonly head: unknown; readonly tail: Buffer };

function encodeFrame(headValue: unknown, tail: readonly Buffer[]): Buffer {
  const head = Buffer.from(JSON.stringify(headValue));
  const frame = Buffer.concat([Buffer.allocUnsafe(8), head, ...tail]);
  frame.writeUInt32BE(frame.length - 4, 0);
  frame.writeUInt32BE(head.length, 4);
  return frame;
}

/** Feed it the chunks of a connection; it calls back once per complete frame. */
export function createFrameReader(onFrame: (frame: Frame) => void): (chunk: Buffer) => void {
  let pending: Buffer[] = [];
  let pendingBytes = 0;
  let neededBytes = 4;
  return (chunk) => {
    pending.push(chunk);
    pendingBytes += chunk.length;
    // Joining only when a frame may be complete keeps a large frame from being copied once per chunk.
    if (pendingBytes < neededBytes) return;
    let rest = pending.length === 1 ? chunk : Buffer.concat(pending, pendingBytes);
    for (;;) {
      neededBytes = rest.length < 4 ? 4 : 4 + rest.readUInt32BE(0);
      if (rest.length < 4 || rest.length < neededBytes) break;
      const tailStart = 8 + rest.readUInt32BE(4);
      const frame = {
        head: JSON.parse(rest.toString("utf8", 8, tailStart)),
        tail: rest.subarray(tailStart, neededBytes),
      };
      rest = rest.subarray(neededBytes);
      onFrame(frame);
    }
    pending = rest.length > 0 ? [rest] : [];
    pendingBytes = rest.length;
  };
}
