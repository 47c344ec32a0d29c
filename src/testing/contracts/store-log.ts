import assert from "node:assert/strict";
import { BYTES_MAX, type Stage, type StoreRule, storeCases } from "./store-stage.ts";

const isLog: StoreRule[2] = ({ isLog = false }) => isLog;

/** An owner dies during a run that parked these two events; returns the next owner. */
async function parkedOnTheWay(stage: Stage) {
  await stage.write("a1 b1");
  const first = await stage.own();
  const dies = async () => {
    await first.die();
    return await stage.own();
  };
  return await first.inRun(
    async (run) => {
      assert.deepEqual(await run.next(10, BYTES_MAX), []);
      return await dies();
    },
    { exceptTypes: ["t"] },
  );
}

/** Events settled ahead of a log's checkpoint, and events parked beside the log. */
export const logCases = storeCases([
  [
    "A2 D9 events settled ahead of the checkpoint stay settled, even if an owner settles before it has read that far",
    async (stage) => {
      await stage.write("a1 b1 c1 d1");
      const first = await stage.own();
      await first.read();
      await first.settle({ delivered: stage.ids("b1 c1") });
      await first.die();
      const second = await stage.own();
      await second.settle({ delivered: stage.ids("a1"), ledger: "heal", batch: 5n });
      await second.die();
      assert.equal(await (await stage.own()).sees(), "d1");
    },
    isLog,
  ],
  [
    "A2 D9 an event that a run parked is read from beside the log, and only from there",
    async (stage) => {
      const second = await parkedOnTheWay(stage);
      const seen = await second.inRun(async (run) => {
        const page = await run.next(10, BYTES_MAX);
        await second.settle({ delivered: page.map(({ id }) => id) });
        return page;
      });
      assert.deepEqual([stage.show(seen), await second.sees()], ["a1 b1", ""]);
    },
    isLog,
  ],
  [
    "A3 D9 after a take-over a parked event does not overtake an event of its key that the former owner had in flight",
    async (stage) => {
      await stage.write("a1");
      await stage.write("a2", { type: "closed" });
      await stage.write("a3");
      const first = await stage.own();
      assert.equal(await first.sees({ exceptTypes: ["closed"] }), "a1");
      await first.die();
      const second = await stage.own();
      const seen: { id: string; key: string | null }[] = [];
      // The source may need several runs.
      for (let run = 0; run < 4; run++) {
        const events = await second.read();
        seen.push(...events);
        if (events.length > 0) await second.settle({ delivered: events.map(({ id }) => id) });
      }
      assert.equal(stage.show(seen), "a1 a2 a3");
    },
    isLog,
  ],
  [
    "A2 D9 a parked event that the ledger lists as delivered is not returned again",
    async (stage) => {
      const second = await parkedOnTheWay(stage);
      await second.settle({ delivered: stage.ids("a1 b1"), ledger: "heal", batch: 5n });
      assert.equal(await second.sees(), "");
    },
    isLog,
  ],
]);
