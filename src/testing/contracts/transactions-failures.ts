import assert from "node:assert/strict";
import {
  assertKinds,
  assertPowerless,
  assertRejectsPromptly,
  GIVE_UP_MS,
  noteOf,
  numbers,
  type TransactionsRule,
  unaborted,
} from "./transactions-stage.ts";

const endings: readonly TransactionsRule[] = [
  [
    "a lane can be closed at any time and twice; the next fence finds no trace of an open transaction",
    async (stage) => {
      const user = await stage.user();
      const unused = await user.fence(stage.lane(), unaborted());
      await unused.close();
      await unused.close();
      const lane = await user.fence(stage.lane(), unaborted());
      await stage.open(lane, 1n, "a1");
      await Promise.all([lane.close(), lane.close()]);
      await assertPowerless(stage, lane, 1n);
      const heir = await user.fence(stage.lane(), unaborted());
      assert.deepEqual(await heir.lastCommitted(0n, unaborted()), []);
      await stage.commit(heir, 1n, "a2");
      await stage.assertVisible("a2");
    },
  ],

  [
    "A2 an abandoned commit is in the ledger if and only if its messages are visible after the next fence",
    async (stage) => {
      const user = await stage.user();
      const committed: string[] = [];
      for (let round = 1; round <= 6; round++) {
        const lane = await user.fence(stage.lane(), unaborted());
        await stage.open(lane, BigInt(round), `a${round}`);
        const giveUp = new AbortController();
        const committing = lane.commit(giveUp.signal);
        for (let turn = 0; turn < round * 2; turn++) await new Promise((resolve) => setImmediate(resolve));
        giveUp.abort();
        const isSure = await committing.then(
          () => true,
          () => false,
        );
        await lane.close();
        const heir = await user.fence(stage.lane(), unaborted());
        const found = numbers(await heir.lastCommitted(BigInt(round - 1), unaborted())).includes(BigInt(round));
        assert.ok(found || !isSure, "an acknowledged commit is not in the ledger");
        if (found) committed.push(`a${round}`);
        await heir.close();
        await stage.assertVisible(committed.join(" "));
      }
    },
  ],

  [
    "calls with an aborted signal promptly end with an error, and nothing becomes visible",
    async (stage) => {
      const user = await stage.user();
      await assertRejectsPromptly(user.fence(stage.lane(), AbortSignal.abort()));
      const lane = await user.fence(stage.lane(), unaborted());
      const messages = stage.messages("a1");
      await assertRejectsPromptly(lane.lastCommitted(0n, AbortSignal.abort()));
      const sender = await user.fence(stage.lane(), unaborted());
      await assertRejectsPromptly(sender.send(messages, noteOf(1n, messages), AbortSignal.abort()));
      const heir = await user.fence(stage.lane(), unaborted());
      assert.deepEqual(await heir.lastCommitted(0n, unaborted()), []);
      await stage.assertVisible("");
    },
  ],
];

const whenRefused: readonly TransactionsRule[] = [
  [
    "C5 a refused message is reported and all others are skipped; without it the same batch can be committed",
    async (stage) => {
      const user = await stage.user();
      const lane = await user.fence(stage.lane(), unaborted());
      const [first, bad, ...others] = stage.messages("a1 b1 b2 c1");
      const batch = [first!, await stage.subject.refuse!(bad!), ...others];
      const outcomes = await lane.send(batch, noteOf(1n, batch), unaborted());
      assert.ok(outcomes[1]?.kind === "rejected" || outcomes[1]?.kind === "retry");
      assert.equal(outcomes[1].scope, "event");
      assert.notEqual(outcomes[1].reason, "");
      assertKinds(outcomes.toSpliced(1, 1), ["skipped", "skipped", "skipped"]);
      await lane.abort(unaborted());
      await stage.assertVisible("");
      const next = await stage.next(user, lane);
      const rest = [first!, others[1]!];
      assertKinds(await next.send(rest, noteOf(1n, rest), unaborted()), ["delivered", "delivered"]);
      await next.commit(unaborted());
      await stage.assertVisible("a1 c1");
      const reader = await user.fence(stage.lane(), unaborted());
      assert.deepEqual(await reader.lastCommitted(0n, unaborted()), [noteOf(1n, rest)]);
    },
    ({ refuses }) => refuses,
  ],

  [
    "A2 a transaction with a refused message cannot be committed by mistake",
    async (stage) => {
      const user = await stage.user();
      const lane = await user.fence(stage.lane(), unaborted());
      const [first, bad] = stage.messages("a1 b1");
      const batch = [first!, await stage.subject.refuse!(bad!)];
      await lane.send(batch, noteOf(1n, batch), unaborted());
      await assert.rejects(lane.commit(unaborted()));
      const reader = await user.fence(stage.lane(), unaborted());
      assert.deepEqual(await reader.lastCommitted(0n, unaborted()), []);
      await stage.assertVisible("");
    },
    ({ refuses }) => refuses,
  ],
];

const whenAnswersAreLost: readonly TransactionsRule[] = [
  [
    "A2 a commit whose answer was lost is found in the ledger after the next fence",
    async (stage) => {
      const user = await stage.user();
      const lane = await user.fence(stage.lane(), unaborted());
      await stage.commit(lane, 1n, "a1");
      const note = await stage.open(lane, 2n, "a2");
      await stage.subject.loseAnswerToCommit!();
      await assert.rejects(lane.commit(AbortSignal.timeout(GIVE_UP_MS)));
      assert.equal(lane.isSpent, true);
      await lane.close();
      const heir = await user.fence(stage.lane(), unaborted());
      assert.deepEqual(await heir.lastCommitted(1n, unaborted()), [note]);
      await stage.assertVisible("a1 a2");
    },
    ({ losesAnswers }) => losesAnswers,
  ],
];

const whenStalled: readonly TransactionsRule[] = [
  [
    "an abort promptly ends calls without an answer with an error, and the lane is spent",
    async (stage) => {
      const user = await stage.user();
      const lane = await user.fence(stage.lane(), unaborted());
      const open = await user.fence(stage.lane({ lane: 1 }), unaborted());
      await stage.open(open, 1n, "b1");
      await stage.subject.stall!();
      const giveUp = new AbortController();
      const messages = stage.messages("a1");
      const calls = [
        lane.send(messages, noteOf(1n, messages), giveUp.signal),
        open.commit(giveUp.signal),
        user.fence(stage.lane({ lane: 2 }), giveUp.signal),
      ];
      await new Promise((resolve) => setImmediate(resolve));
      giveUp.abort();
      await Promise.all(calls.map(assertRejectsPromptly));
      assert.deepEqual([lane.isSpent, open.isSpent], [true, true]);
      await Promise.all([lane.close(), open.close()]);
      await stage.subject.resume!();
      const heir = await user.fence(stage.lane(), unaborted());
      await stage.commit(heir, 1n, "a2");
      assert.deepEqual(await heir.lastCommitted(0n, unaborted()).then(numbers), [1n]);
    },
    ({ stalls }) => stalls,
  ],
];

/** Rules of failing and abandoned transactions. */
export const failures: readonly TransactionsRule[] = [
  ...endings,
  ...whenRefused,
  ...whenAnswersAreLost,
  ...whenStalled,
];
