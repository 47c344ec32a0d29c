import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isRelayError } from "../../core/errors.ts";
import type { Message } from "../../core/event.ts";
import { retry } from "../../core/outcome.ts";
import type { LaneAddress } from "../../ports/transactions.ts";
import { memoryPublisher } from "./memory-publisher.ts";
import { TransactionBroker } from "./memory-transaction-broker.ts";

const lane: LaneAddress = { database: "d", pipeline: "p", lane: 0, slot: 0 };
const isFenced = (error: unknown) => isRelayError(error, "FENCED");

/** A broker of bare names and what its readers see. */
function setUp(options: { ringSize?: number; timeoutMs?: number } = {}) {
  const clock = { ms: 0 };
  const broker = new TransactionBroker<string>({ ...options, nowMs: () => clock.ms });
  const visible: string[] = [];
  broker.onVisible((records) => void visible.push(...records));
  broker.prepare(2);
  const commit = (epoch: number, batch: bigint, ...names: string[]): void => {
    broker.write(lane, epoch, names, { batch, ids: names });
    broker.decide(lane, epoch);
    broker.complete(lane);
  };
  return { broker, clock, visible, commit };
}

describe("a broker in memory", () => {
  it("A2 shows what was committed, in its order, and nothing that is open or aborted", () => {
    const { broker, visible, commit } = setUp();
    const epoch = broker.begin(lane);
    broker.write(lane, epoch, ["a"], null);
    assert.deepEqual(visible, []);
    broker.abort(lane, epoch);
    commit(epoch, 1n, "b", "c");
    assert.deepEqual(visible, ["b", "c"]);
  });

  it("A2 B4 a fence aborts what is open, and requests of an earlier epoch have no effect", () => {
    const { broker, visible, commit } = setUp();
    const before = broker.begin(lane);
    broker.write(lane, before, ["a"], null);
    const after = broker.begin(lane);
    for (const request of [
      () => broker.write(lane, before, ["b"], null),
      () => broker.decide(lane, before),
      () => broker.abort(lane, before),
    ]) {
      assert.throws(request, isFenced);
    }
    commit(after, 1n, "c");
    assert.deepEqual(visible, ["c"]);
  });

  it("A2 a fence completes what was decided", () => {
    const { broker, visible } = setUp();
    const epoch = broker.begin(lane);
    broker.write(lane, epoch, ["a"], { batch: 1n, ids: ["a"] });
    broker.decide(lane, epoch);
    assert.deepEqual(visible, []);
    broker.begin(lane);
    assert.deepEqual(visible, ["a"]);
    assert.deepEqual(broker.ledger(lane, 0n), [{ batch: 1n, ids: ["a"] }]);
  });

  it("a late commit makes visible whatever is open in its epoch, a late write joins it", () => {
    const { broker, visible, commit } = setUp();
    const epoch = broker.begin(lane);
    commit(epoch, 1n, "a");
    broker.write(lane, epoch, ["b"], null);
    broker.write(lane, epoch, ["late"], null);
    broker.decide(lane, epoch);
    broker.complete(lane);
    assert.deepEqual(visible, ["a", "b", "late"]);
    assert.deepEqual(broker.ledger(lane, 0n), [{ batch: 1n, ids: ["a"] }]);
  });

  it("a second commit of the same transaction changes nothing; one without any transaction is refused", () => {
    const { broker, visible, commit } = setUp();
    const epoch = broker.begin(lane);
    assert.throws(() => broker.decide(lane, epoch), /no transaction to commit/);
    commit(epoch, 1n, "a");
    broker.decide(lane, epoch);
    assert.throws(() => broker.abort(lane, epoch), /no transaction to abort/);
    assert.deepEqual(visible, ["a"]);
  });

  it("a transaction that is open for too long is aborted, and who opened it is fenced", () => {
    const { broker, clock, visible, commit } = setUp({ timeoutMs: 100 });
    const epoch = broker.begin(lane);
    broker.write(lane, epoch, ["a"], null);
    clock.ms = 101;
    assert.throws(() => broker.decide(lane, epoch), isFenced);
    commit(broker.begin(lane), 1n, "b");
    assert.deepEqual(visible, ["b"]);
  });

  it("the ledger is a ring: a batch overwrites the one a whole ring before it", () => {
    const { broker, commit } = setUp({ ringSize: 4 });
    const epoch = broker.begin(lane);
    for (let batch = 1n; batch <= 6n; batch++) commit(epoch, batch, `e${batch}`);
    const numbers = (after: bigint) => broker.ledger(lane, after).map(({ batch }) => batch);
    assert.deepEqual([numbers(0n), numbers(4n), numbers(6n)], [[3n, 4n, 5n, 6n], [5n, 6n], [6n]]);
    assert.deepEqual(broker.ledger({ ...lane, slot: 1 }, 0n), []);
  });

  it("a lane without a slot in the ledger is refused", () => {
    const { broker } = setUp();
    assert.throws(
      () => broker.begin({ ...lane, slot: 2 }),
      (error) => isRelayError(error, "LEDGER_UNFIT"),
    );
  });
});

describe("C7 a memory publisher with transactions", () => {
  const { signal } = new AbortController();
  const message = (id: string): Message => {
    const payload = Buffer.from(id);
    const event = { id, type: "t", key: null, payload, headers: {}, correlationId: null, createdAt: null };
    return { event, topic: "t", key: null, headers: {}, payload };
  };
  const note = (batch: bigint, ...ids: string[]) => ({ batch, ids });

  it("C7 keeps what was committed, of all who share its broker", async () => {
    const broker = new TransactionBroker<Message>();
    const [one, other] = [broker, broker].map((transactions) => memoryPublisher({ transactions }));
    await one!.transactions!.prepare(1);
    const session = await one!.transactions!.fence(lane, signal);
    await session.send([message("a"), message("b")], note(1n, "a", "b"), signal);
    assert.equal(other!.delivered.length, 0);
    await session.commit(signal);
    await other!.arrived(2);
    assert.deepEqual(
      other!.delivered.map(({ event }) => event.id),
      ["a", "b"],
    );
  });

  it("C7 a scripted failure skips the others of the transaction and spends the session", async () => {
    const publisher = memoryPublisher({ transactions: true });
    await publisher.transactions!.prepare(1);
    const session = await publisher.transactions!.fence(lane, signal);
    publisher.failNext(1, retry("no"));
    const outcomes = await session.send([message("a"), message("b")], note(1n, "a", "b"), signal);
    assert.deepEqual(
      outcomes.map(({ kind }) => kind),
      ["retry", "skipped"],
    );
    assert.equal(session.isSpent, true);
    await session.abort(signal);
    assert.deepEqual(publisher.delivered, []);
  });

  it("C7 while it is down nothing of a transaction succeeds", async () => {
    const publisher = memoryPublisher({ transactions: true });
    publisher.down("refused");
    await assert.rejects(publisher.transactions!.fence(lane, signal), (error) =>
      isRelayError(error, "DESTINATION_UNREACHABLE"),
    );
    publisher.up();
    await publisher.transactions!.prepare(1);
    assert.equal((await publisher.transactions!.fence(lane, signal)).isSpent, false);
  });
});
