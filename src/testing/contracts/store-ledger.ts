import assert from "node:assert/strict";
import type { ClaimedEvent } from "../../ports/queue-store.ts";
import { BYTES_MAX, SPEC, storeCases } from "./store-stage.ts";

/** What exactly-once delivery needs from a source: stable slots, and progress that can be compared with a ledger. */
export const ledgerCases = storeCases([
  [
    "A2 every pipeline has its own slots in its database, however often and concurrently they are requested",
    async (stage) => {
      const stores = [
        { ...SPEC, lanes: 4 },
        { ...SPEC, name: "another", lanes: 2 },
      ].map((spec) => stage.subject.store(spec));
      for (const store of stores) await store.prepare();
      const asked = await Promise.all([...stores, ...stores].map((store) => store.identity()));
      const [first, other] = asked;
      assert.deepEqual(asked.slice(2), [first, other]);
      assert.equal(first?.database, other?.database);
      assert.deepEqual([first?.lanes, other?.lanes], [4, 2]);
      assert.ok(first?.isAtHome && other?.isAtHome);
      const slots = [first, other].flatMap((it) =>
        Array.from({ length: it!.lanes }, (_, lane) => it!.firstSlot + lane),
      );
      assert.deepEqual([...new Set(slots)].sort(), [0, 1, 2, 3, 4, 5]);
    },
  ],

  [
    "A2 only batches settled with a ledger count as ledgered, and the next owner gets both numbers",
    async (stage) => {
      await stage.write("a1 b1 c1");
      const owner = await stage.own();
      await owner.read();
      assert.equal(owner.takeoverOf(0).ledgeredBatch, 0n);
      await owner.settle({ delivered: stage.ids("a1") });
      await owner.settle({ delivered: stage.ids("b1"), ledger: "batch", batch: 7n });
      await owner.settle({ delivered: stage.ids("c1"), batch: 8n });
      await owner.die();
      const { settledBatch, ledgeredBatch } = (await stage.own()).takeoverOf(0);
      assert.deepEqual([settledBatch, ledgeredBatch], [8n, 7n]);
    },
  ],

  [
    "A2 a successor settles what a former owner delivered, without having claimed it",
    async (stage) => {
      await stage.write("a1 a2 b1");
      const first = await stage.own();
      await first.inRun((run) => run.next(2, BYTES_MAX));
      await first.die();
      const second = await stage.own();
      const result = await second.settle({ delivered: stage.ids("a1 b1"), ledger: "heal", batch: 3n });
      assert.deepEqual(result.missing, []);
      assert.equal(stage.showIds(await stage.subject.deliveredIds()), "a1 b1");
      assert.equal(stage.show(await second.read()), "a2");
    },
  ],

  [
    "A2 events can be read by id without a claim, held or not, until they are settled",
    async (stage) => {
      await stage.write("a1 b1 c1");
      const owner = await stage.own();
      const read = await owner.read();
      await owner.settle({ delivered: stage.ids("c1") });
      const looked: ClaimedEvent[] = [];
      const waiting = [...stage.ids("a1 b1 c1 d1")];
      while (waiting.length > 0) {
        const { events, unread } = await owner.store.readUnsettled(waiting.splice(0));
        looked.push(...events);
        waiting.push(...unread);
      }
      assert.equal(stage.show(looked), "a1 b1");
      const content = ({ id, type, key, createdAt, payload }: ClaimedEvent) =>
        [id, type, key, createdAt, payload.toString("latin1")].join();
      const before = new Map(read.map((event) => [event.id, content(event)]));
      for (const event of looked) assert.equal(content(event), before.get(event.id));
    },
  ],

  [
    "A2 a healing settle reports events that another program marked or deleted meanwhile",
    async (stage) => {
      await stage.write("a1 b1 c1");
      await stage.subject.markByHand(stage.id("a1"));
      await stage.subject.deleteRow(stage.id("b1"));
      const owner = await stage.own();
      const result = await owner.settle({ delivered: stage.ids("a1 b1 c1"), ledger: "heal", batch: 1n });
      assert.equal(stage.showIds(result.missing), "a1 b1");
    },
    ({ isLog = false }) => !isLog,
  ],
]);
