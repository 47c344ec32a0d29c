import assert from "node:assert/strict";
import { test } from "node:test";
import { Gate } from "./gate.ts";

test("at most so many are inside, the others follow in the order in which they came", async () => {
  const gate = new Gate(2);
  const inside: string[] = [];
  const enter = async (name: string) => {
    const leave = await gate.enter();
    inside.push(name);
    return leave;
  };
  const [leaveA, leaveB] = [await enter("a"), await enter("b")];
  const waitingC = enter("c");
  const waitingD = enter("d");
  await Promise.resolve();
  assert.deepEqual(inside, ["a", "b"]);
  leaveB();
  const leaveC = await waitingC;
  leaveA();
  const leaveD = await waitingD;
  assert.deepEqual(inside, ["a", "b", "c", "d"]);
  leaveC();
  leaveD();
});

test("leaving twice lets nobody else in", async () => {
  const gate = new Gate(1);
  const leave = await gate.enter();
  leave();
  leave();
  await gate.enter();
  let entered = false;
  gate.enter().then(() => {
    entered = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(entered, false);
});
