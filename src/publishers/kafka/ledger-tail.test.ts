import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { encodeNote } from "./ledger-record.ts";
import { type FetchedBatch, LedgerTail } from "./ledger-tail.ts";

const OURS = "db/pipeline/1/";
const OTHERS = ["db/pipeline/2/", "db/pipeline/11/", "other/pipeline/1/"];
const TRANSACTIONAL = 1 << 4;
const CONTROL = 1 << 5;

/** A log in which each lane has one producer; a step writes a lane's note, or ends what the lane has open. */
class Log {
  readonly batches: FetchedBatch[] = [];
  readonly #open = new Map<string, bigint>();
  /** What a reader of committed records sees of our lane. */
  readonly committed: bigint[] = [];

  /** Producer 1 writes for our lane unless another one is named. */
  note(prefix: string, batch: bigint, producerId = 1n, ringSize = 64n): void {
    const key = Buffer.from(`${prefix}${batch % ringSize}`);
    const value = encodeNote({ batch, ids: [`${prefix}${batch}`] });
    this.#append(producerId, TRANSACTIONAL, key, value);
    if (prefix === OURS) this.#open.set(String(producerId), batch);
  }

  end(isCommit: boolean, producerId = 1n): void {
    const key = Buffer.alloc(4);
    key.writeInt16BE(isCommit ? 1 : 0, 2);
    this.#append(producerId, TRANSACTIONAL | CONTROL, key, Buffer.alloc(6));
    const batch = this.#open.get(String(producerId));
    if (isCommit && batch !== undefined) this.committed.push(batch);
    this.#open.delete(String(producerId));
  }

  #append(producerId: bigint, attributes: number, key: Buffer, value: Buffer): void {
    const firstOffset = BigInt(this.batches.length);
    const records = [{ offsetDelta: 0, key, value }];
    this.batches.push({ firstOffset, lastOffsetDelta: 0, attributes, producerId, records });
  }
}

/** Reads in windows of these sizes from the end; null when the tail says that something is undecided. */
function read(log: Log, tail: LedgerTail, windows: readonly number[]): LedgerTail | null {
  let to = log.batches.length;
  for (let at = 0; to > 0 && !tail.isComplete; at++) {
    const from = Math.max(0, to - (windows[at % windows.length] ?? 1));
    for (const batch of log.batches.slice(from, to)) tail.take(batch);
    if (!tail.closeWindow()) return null;
    to = from;
  }
  return tail;
}

function numbersAbove(log: Log, after: bigint, windows: readonly number[], ringSize = 64): bigint[] | null {
  const tail = read(log, new LedgerTail(OURS, ringSize, after), windows);
  return tail?.notesAbove(after).map(({ batch }) => batch) ?? null;
}

test("A2 whatever the windows, exactly what was committed is found, among other lanes and aborted transactions", () => {
  const step = fc.record({ lane: fc.integer({ min: 0, max: 3 }), isCommit: fc.boolean() });
  const windows = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), windows, fc.bigInt({ min: 0n, max: 20n }), (steps, sizes, after) => {
      const log = new Log();
      const isOpen = [false, false, false, false];
      let last = 0n;
      for (const { lane, isCommit } of steps) {
        const producerId = BigInt(lane + 1);
        if (isOpen[lane]) log.end(isCommit, producerId);
        else log.note(lane === 0 ? OURS : OTHERS[lane - 1]!, lane === 0 ? last + 1n : 5n, producerId);
        isOpen[lane] = !isOpen[lane];
        last = log.committed.at(-1) ?? 0n;
      }
      if (isOpen[0]) log.end(false);
      const above = log.committed.filter((batch) => batch > after);
      assert.deepEqual(numbersAbove(log, after, sizes), above.length > 0 ? above : log.committed.slice(-1));
    }),
  );
});

test("A2 the end of an undecided transaction of the lane is never guessed", () => {
  const log = new Log();
  log.note(OURS, 1n);
  log.end(true);
  log.note(OURS, 2n);
  assert.equal(numbersAbove(log, 0n, [100]), null);
  assert.equal(numbersAbove(log, 0n, [1]), null);
  log.end(true);
  assert.deepEqual(numbersAbove(log, 0n, [1]), [1n, 2n]);
});

test("a former owner's producer may have had another number", () => {
  const log = new Log();
  log.note(OURS, 1n, 8n);
  log.end(true, 8n);
  log.note(OURS, 2n, 8n);
  log.end(false, 8n);
  log.note(OURS, 2n, 9n);
  log.end(true, 9n);
  assert.deepEqual(numbersAbove(log, 0n, [2]), [1n, 2n]);
});

test("A2 a place of the ring that was taken again holds the later batch, compacted or not", () => {
  const log = new Log();
  for (let batch = 1n; batch <= 10n; batch++) {
    log.note(OURS, batch);
    log.end(true);
  }
  assert.deepEqual(numbersAbove(log, 0n, [5], 4), [7n, 8n, 9n, 10n]);
  assert.deepEqual(numbersAbove(log, 8n, [5], 4), [9n, 10n]);
});

test("numbers of a count that was given up are not mixed into the present one", () => {
  const log = new Log();
  for (const batch of [900n, 901n, 902n, 5n, 6n]) {
    log.note(OURS, batch);
    log.end(true);
  }
  assert.deepEqual(numbersAbove(log, 4n, [3]), [5n, 6n]);
  assert.deepEqual(numbersAbove(log, 6n, [100]), [6n]);
});

test("it stops as soon as it has seen enough", () => {
  const log = new Log();
  for (let batch = 1n; batch <= 100n; batch++) {
    log.note(OURS, batch);
    log.end(true);
  }
  const tail = new LedgerTail(OURS, 64, 97n);
  for (const batch of log.batches.slice(-8)) tail.take(batch);
  assert.equal(tail.closeWindow(), true);
  assert.equal(tail.isComplete, true);
});

test("a record outside a transaction, a tombstone and another producer's control record are ignored", () => {
  const log = new Log();
  log.note(OURS, 1n);
  log.end(true);
  const [note, marker] = log.batches as [FetchedBatch, FetchedBatch];
  const key = note.records[0]!.key;
  const foreign: FetchedBatch[] = [
    { ...note, firstOffset: 2n, attributes: 0, producerId: -1n },
    { ...note, firstOffset: 3n, records: [{ offsetDelta: 0, key, value: null }] },
    { ...marker, firstOffset: 4n, records: [{ offsetDelta: 0, key: Buffer.from([0, 0, 0, 2]), value: null }] },
    { ...note, firstOffset: 5n, records: [] },
  ];
  log.batches.push(...foreign);
  assert.deepEqual(numbersAbove(log, 0n, [10]), [1n]);
});

test("H1 the records of a smaller ring are read on, and a failover that lost hundreds of settles finds them all", () => {
  const log = new Log();
  const commit = (batch: bigint, ringSize: bigint): void => {
    log.note(OURS, batch, 1n, ringSize);
    log.end(true);
  };
  for (let batch = 1n; batch <= 100n; batch++) commit(batch, 64n);
  // What the smaller ring has lost to compaction is not missed.
  log.batches.splice(0, 2 * 36);
  for (const [index, batch] of log.batches.entries()) log.batches[index] = { ...batch, firstOffset: BigInt(index) };
  for (let batch = 101n; batch <= 900n; batch++) commit(batch, 4_096n);
  for (const after of [100n, 64n, 899n]) {
    const expected = Array.from({ length: 900 - Number(after) }, (_, index) => after + 1n + BigInt(index));
    assert.deepEqual(numbersAbove(log, after, [16, 64, 256], 4_096), expected);
  }
});
