import assert from "node:assert/strict";
import { until } from "./contract-case.ts";
import { AT_ONCE, BYTES_MAX, storeCases } from "./store-stage.ts";

const HOSTILE_KEYS = ["it's", '"quoted"', "back\\slash", "a,b", "{a}", "%", "_", "", " ", "ключ🔑", "null", "$1", "--"];

/** Which events a run returns, and in which order. */
export const readingCases = storeCases([
  [
    "A3 events of a key are returned in the order of writing",
    async (stage) => {
      await stage.write("a1 b1 a2 a3 b2 a4 a5 a6 b3 a7 -1");
      assert.equal(await (await stage.own()).sees(), "-1 a1 a2 a3 a4 a5 a6 a7 b1 b2 b3");
    },
  ],

  [
    "A3 events of a key are returned in the order of writing, also within one transaction",
    async (stage) => {
      const names = Array.from({ length: 12 }, (_, index) => `a${index}`);
      await stage.subject.insertInOneTransaction(names.map((name) => stage.events(name)));
      await stage.write("a12");
      assert.equal(await (await stage.own()).sees(), [...names, "a12"].join(" "));
    },
  ],

  [
    "a run never returns a row twice, whatever is written and settled meanwhile",
    async (stage) => {
      await stage.write("a1 a2 b1 b2 c1 c2 d1 d2");
      const owner = await stage.own();
      const shown: string[] = [];
      await owner.inRun(async (run) => {
        for (let round = 0; ; round++) {
          const ids = (await run.next(2, BYTES_MAX)).map(({ id }) => id);
          if (ids.length === 0) return;
          shown.push(...ids);
          if (round < 5) await stage.write(`z${round}`);
          if (round === 1) await owner.settle({ failed: [stage.failure(stage.showIds([ids[0]!]), AT_ONCE)] });
          else await owner.settle({ delivered: ids });
        }
      });
      assert.equal(new Set(shown).size, shown.length);
      for (const id of stage.ids("a1 b1 c1 d1")) assert.ok(shown.includes(id));
    },
  ],

  [
    "a run returns its lanes as they are when it begins: owner, epoch, settled batch and timeline",
    async (stage) => {
      await stage.write("a1 a2");
      const first = await stage.own();
      await first.read();
      await first.settle({ delivered: stage.ids("a1") });
      const lanes = await first.inRun(async (run) => run.lanes);
      assert.deepEqual(lanes, [{ ...first.takeoverOf().grant, settledBatch: 1n }]);
    },
  ],

  [
    "B4 a run under an old grant reports that the lane has another owner, and claims nothing from it",
    async (stage) => {
      await stage.write("a1 a2");
      const first = await stage.own();
      await first.die();
      const second = await stage.own();
      await first.inRun(async (run) => {
        assert.equal(run.lanes[0]?.owner, second.id);
        await run.next(10, BYTES_MAX);
      });
      assert.equal(await second.sees(), "a1 a2");
    },
  ],

  [
    "a run can be ended at any time, also twice and before its first page",
    async (stage) => {
      await stage.write("a1 a2");
      const owner = await stage.own();
      for (const pages of [0, 1, 3]) {
        await owner.inRun(async (run) => {
          for (let page = 0; page < pages; page++) await owner.handBack([...(await run.next(1, BYTES_MAX))]);
          await run.end();
        });
      }
      assert.equal(await owner.sees(), "a1 a2");
    },
  ],

  [
    "a run over no lanes, or over an empty table, returns no events",
    async (stage) => {
      const owner = await stage.own();
      assert.equal(await owner.sees(), "");
      await stage.write("a1");
      assert.equal(await owner.sees({ grants: [] }), "");
    },
  ],

  [
    "keys in exceptKeys are excluded; all others and events without a key are returned",
    async (stage) => {
      await stage.write("a1 b1 a2 -1");
      const owner = await stage.own();
      assert.equal(await owner.sees({ exceptKeys: ["a"] }), "-1 b1");
      assert.equal(await owner.sees({ exceptKeys: ["a", "b", "unknown"] }), "-1");
    },
  ],

  [
    "types in exceptTypes are excluded, and with them every event of a key that has one pending",
    async (stage) => {
      await stage.write("a1 b1 -1");
      await stage.write("a2 c1 -2", { type: "it's_closed%" });
      await stage.write("a3 c2 d1");
      const owner = await stage.own();
      assert.equal(await owner.sees({ exceptTypes: ["it's_closed%"] }), "-1 b1 d1");
      assert.equal(await owner.sees({ exceptTypes: ["unknown"] }), "-1 -2 a1 a2 a3 b1 c1 c2 d1");
      assert.equal(await owner.sees({ exceptTypes: ["t"], exceptKeys: ["c"] }), "-2");
    },
    ({ isLog = false }) => !isLog,
  ],

  [
    "types in exceptTypes are excluded, and with them every later event of their keys, until they are no longer named",
    async (stage) => {
      await stage.write("a1 b1 -1");
      await stage.write("a2 c1 -2", { type: "it's_closed%" });
      await stage.write("a3 c2 d1");
      const owner = await stage.own();
      assert.equal(await owner.sees({ exceptTypes: ["it's_closed%"] }), "-1 a1 b1 d1");
      await stage.write("a4 d2");
      assert.equal(await owner.sees({ exceptTypes: ["it's_closed%"] }), "-1 b1 d1 d2");
      assert.equal(await owner.sees({ exceptTypes: ["unknown"] }), "-1 -2 a1 a2 a3 a4 b1 c1 c2 d1 d2");
      assert.equal(await owner.sees({ exceptTypes: ["t"], exceptKeys: ["c"] }), "-2");
    },
    ({ isLog = false }) => isLog,
  ],

  [
    "a page ends when its byte limit is reached, has at least one event, and no events are lost between pages",
    async (stage) => {
      const payload = Buffer.from(JSON.stringify("x".repeat(998)));
      await stage.write("a1 a2 a3 a4 a5 a6", { payload });
      const owner = await stage.own();
      const pages = await owner.inRun(async (run) => {
        const read = [];
        for (const bytes of [1, 2_500, 1_000, 100_000, 100_000, 100_000]) read.push(await run.next(4, bytes));
        return read;
      });
      const [first, second, third] = pages.map((page) => page.length);
      assert.deepEqual([first, third], [1, 1]);
      // A streamed log may have fewer events available than would fit.
      assert.ok(second! >= 1 && second! <= 3, `${second} in the second page`);
      assert.equal(stage.show(pages.flat()), "a1 a2 a3 a4 a5 a6");
    },
  ],

  [
    "any text can be a key: it arrives as written and can be excluded",
    async (stage) => {
      const owner = await stage.own({ lanes: 3 });
      for (const [index, key] of HOSTILE_KEYS.entries()) await stage.write(`e${index}`, { key });
      const events = await owner.read();
      await owner.handBack(events);
      assert.deepEqual(events.map(({ key }) => key).sort(), [...HOSTILE_KEYS].sort());
      await stage.write("-1");
      for (const key of HOSTILE_KEYS) {
        const rest = await owner.read({ exceptKeys: [key] });
        await owner.handBack(rest);
        const keys = rest.map((event) => event.key).filter((it) => it !== null);
        assert.deepEqual(keys.sort(), HOSTILE_KEYS.filter((it) => it !== key).sort());
      }
      assert.equal(await owner.sees({ exceptKeys: HOSTILE_KEYS }), "-1");
    },
  ],

  [
    "the probe reports whether a run would return events",
    async (stage) => {
      const owner = await stage.own();
      // It may be wrong at first: a run corrects it.
      const saysNo = async () => {
        if (!(await owner.store.probe(owner.grants))) return true;
        await owner.sees();
        return false;
      };
      await until("the probe says no", saysNo);
      await stage.write("a1");
      await until("the probe says yes", () => owner.store.probe(owner.grants));
      await owner.read();
      await owner.settle({ delivered: stage.ids("a1") });
      await until("the probe says no again", saysNo);
    },
  ],

  [
    "C4 writing an event twice changes nothing, also when it was delivered meanwhile",
    async (stage) => {
      await stage.write("a1 a2");
      await stage.write("a1", { payload: Buffer.from('"other"') });
      const owner = await stage.own();
      const events = await owner.read();
      assert.equal(stage.show(events), "a1 a2");
      assert.equal(events[0]?.payload.toString(), '"a1"');
      await owner.settle({ delivered: stage.ids("a1 a2") });
      await stage.write("a1");
      assert.equal(await owner.sees(), "");
      assert.equal(await stage.pending(), "");
    },
  ],
]);
