import assert from "node:assert/strict";
import { failures } from "./transactions-failures.ts";
import {
  assertKinds,
  assertPowerless,
  numbers,
  PROMPTLY_MS,
  type TransactionsRule,
  transactionsCases,
  unaborted,
} from "./transactions-stage.ts";

const visibility: readonly TransactionsRule[] = [
  [
    "A2 a transaction is fully visible after its commit, and not at all before",
    async (stage) => {
      const lane = await (await stage.user()).fence(stage.lane(), unaborted());
      await stage.open(lane, 1n, "a1 b1 a2");
      await stage.assertVisible("");
      await lane.commit(unaborted());
      await stage.assertVisible("a1 a2 b1");
    },
  ],

  [
    "A3 messages of a key become visible in their order, within a transaction and over many",
    async (stage) => {
      const user = await stage.user();
      let lane = await user.fence(stage.lane(), unaborted());
      const sent: string[] = [];
      for (let batch = 1; batch <= 20; batch++) {
        const names = [1, 2, 3].map((n) => `a${batch * 10 + n}`);
        sent.push(...names);
        await stage.commit(lane, BigInt(batch), names.join(" "));
        lane = await stage.next(user, lane);
      }
      await stage.assertVisible(sent.join(" "));
    },
  ],

  [
    "A2 an aborted transaction never becomes visible and is not in the ledger; the next one is",
    async (stage) => {
      const user = await stage.user();
      const first = await user.fence(stage.lane(), unaborted());
      await stage.commit(first, 1n, "a1");
      const second = await stage.next(user, first);
      await stage.open(second, 2n, "a2 b2");
      await second.abort(unaborted());
      const third = await stage.next(user, second);
      const note = await stage.commit(third, 2n, "a3");
      await stage.assertVisible("a1 a3");
      const reader = await user.fence(stage.lane(), unaborted());
      assert.deepEqual(await reader.lastCommitted(1n, unaborted()), [note]);
    },
  ],

  [
    "an abort without a transaction changes nothing",
    async (stage) => {
      const lane = await (await stage.user()).fence(stage.lane(), unaborted());
      await lane.abort(unaborted());
      assert.equal(lane.isSpent, false);
      await stage.commit(lane, 1n, "a1");
      await stage.assertVisible("a1");
    },
  ],
];

const fencing: readonly TransactionsRule[] = [
  [
    "A2 B4 the next fence aborts an open transaction, and its former user can no longer commit it",
    async (stage) => {
      const zombie = await (await stage.user()).fence(stage.lane(), unaborted());
      await stage.commit(zombie, 1n, "a1");
      await stage.open(zombie, 2n, "a2 b2");
      const heir = await (await stage.user()).fence(stage.lane(), unaborted());
      assert.deepEqual(await heir.lastCommitted(1n, unaborted()).then(numbers), [1n]);
      await assert.rejects(zombie.commit(unaborted()));
      assert.equal(zombie.isSpent, true);
      await stage.commit(heir, 2n, "a3");
      await stage.assertVisible("a1 a3");
    },
  ],

  [
    "B4 messages of a fenced user never become visible, and do not affect its successor",
    async (stage) => {
      const zombie = await (await stage.user()).fence(stage.lane(), unaborted());
      await stage.commit(zombie, 1n, "a1");
      const heir = await (await stage.user()).fence(stage.lane(), unaborted());
      await stage.open(heir, 2n, "a2");
      await assertPowerless(stage, zombie, 2n);
      await heir.commit(unaborted());
      await assertPowerless(stage, zombie, 3n);
      await stage.assertVisible("a1 a2");
      const reader = await (await stage.user()).fence(stage.lane(), unaborted());
      assert.deepEqual(await reader.lastCommitted(0n, unaborted()).then(numbers), [1n, 2n]);
    },
  ],

  [
    "a process that fences its own lane again is the only one that can continue to use it",
    async (stage) => {
      const user = await stage.user();
      const first = await user.fence(stage.lane(), unaborted());
      const second = await user.fence(stage.lane(), unaborted());
      await assertPowerless(stage, first, 1n);
      await stage.commit(second, 1n, "a1");
      await stage.assertVisible("a1");
    },
  ],

  [
    "B4 lanes of another number, pipeline or database are not fenced, and their ledgers are their own",
    async (stage) => {
      const user = await stage.user();
      // The foreign database has the same slot: the two may share a place, but nothing else.
      const addresses = [
        stage.lane(),
        stage.lane({ lane: 1 }),
        stage.lane({ pipeline: "invoices", slot: 2 }),
        stage.lane({ database: "7f3d2a53-96a0-4b0c-8a0b-0d5f3a1c9e77" }),
      ];
      const lanes = [];
      for (const address of addresses) lanes.push(await user.fence(address, unaborted()));
      const notes = [];
      for (const [index, lane] of lanes.entries()) notes.push(await stage.commit(lane, 1n, `a${index}`));
      await stage.assertVisible("a0 a1 a2 a3");
      for (const [index, address] of addresses.entries()) {
        const lane = await user.fence(address, unaborted());
        assert.deepEqual(await lane.lastCommitted(0n, unaborted()), [notes[index]]);
      }
    },
  ],

  [
    "F4 an open transaction of another lane or database does not block reading the ledger",
    async (stage) => {
      const user = await stage.user();
      const note = await stage.commit(await user.fence(stage.lane(), unaborted()), 7n, "a1");
      for (const other of [stage.lane({ lane: 1 }), stage.lane({ database: "0c4dfd6c-51be-4b0b-94e9-a2f3ed5b1a11" })])
        await stage.open(await user.fence(other, unaborted()), 1n, "b1");
      const lane = await user.fence(stage.lane(), unaborted());
      assert.deepEqual(await lane.lastCommitted(0n, AbortSignal.timeout(PROMPTLY_MS)), [note]);
    },
  ],
];

const ledger: readonly TransactionsRule[] = [
  [
    "the ledger may be prepared again and by several at once, for fewer, as many and more slots",
    async (stage) => {
      const [one, other] = await Promise.all([stage.user(), stage.user()]);
      await Promise.all([one.prepare(6), other.prepare(6), one.prepare(1)]);
      const lane = await one.fence(stage.lane({ lane: 5 }), unaborted());
      await stage.commit(lane, 1n, "a1");
      await other.prepare(2);
      assert.equal((await lane.lastCommitted(0n, unaborted())).length, 1);
    },
  ],

  [
    "A2 the ledger returns the committed batches above a number in ascending order, else the last one, else none",
    async (stage) => {
      const user = await stage.user();
      const lane = await user.fence(stage.lane(), unaborted());
      assert.deepEqual(await lane.lastCommitted(0n, unaborted()), []);
      const notes = [];
      for (let batch = 1n; batch <= 5n; batch++) notes.push(await stage.commit(lane, batch, `a${batch} b${batch}`));
      const heir = await user.fence(stage.lane(), unaborted());
      assert.deepEqual(await heir.lastCommitted(0n, unaborted()), notes);
      assert.deepEqual(await heir.lastCommitted(3n, unaborted()), notes.slice(3));
      assert.deepEqual(await heir.lastCommitted(5n, unaborted()), notes.slice(4));
      assert.deepEqual(await heir.lastCommitted(99n, unaborted()), notes.slice(4));
    },
  ],

  [
    "A2 the ledger keeps a whole ring of batches and drops older ones",
    async (stage) => {
      const user = await stage.user();
      const lane = await user.fence(stage.lane(), unaborted());
      const notes = [];
      const last = user.ringSize + 3;
      for (let batch = 1; batch <= last; batch++) notes.push(await stage.commit(lane, BigInt(batch), "a1"));
      const heir = await user.fence(stage.lane(), unaborted());
      assert.deepEqual(await heir.lastCommitted(0n, unaborted()), notes.slice(-user.ringSize));
      assert.deepEqual(await heir.lastCommitted(BigInt(last - 2), unaborted()), notes.slice(-2));
    },
  ],

  [
    "the ids of a note are read back unchanged, whatever characters they hold and however many they are",
    async (stage) => {
      const user = await stage.user();
      const lane = await user.fence(stage.lane(), unaborted());
      const strange = [
        "1",
        "",
        "ULID-01ARZ3NDEKTSV4RRFFQ69G5FAV",
        "ü€𝄞 %/\\\u0000",
        "3F2504E0-4F89-41D3-9A0C-0305E82C3301",
        "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
        "3f2504e04f8941d39a0c0305e82c3301",
        "x".repeat(1_000),
      ];
      const many = Array.from({ length: 5_000 }, (_, n) => `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`);
      const notes = [
        { batch: 3n, ids: strange },
        { batch: 2n ** 40n, ids: many },
        { batch: 2n ** 40n + 1n, ids: [] },
      ];
      for (const note of notes) {
        assertKinds(await lane.send(stage.messages("a1"), note, unaborted()), ["delivered"]);
        await lane.commit(unaborted());
      }
      assert.deepEqual(await lane.lastCommitted(0n, unaborted()), notes);
    },
  ],
];

/** The guarantees of every destination with transactions. Each case opens its own destination and closes it. */
export const transactionsContract = transactionsCases([...visibility, ...fencing, ...ledger, ...failures]);
