import assert from "node:assert/strict";
import { test } from "node:test";
import { Semaphore } from "./semaphore.ts";

const never = new AbortController().signal;

test("a semaphore gives out its permits, then makes the others wait in the order in which they asked", async () => {
  const semaphore = new Semaphore(2);
  const order: string[] = [];
  const work = async (name: string) => {
    assert.equal(await semaphore.acquire(never), true);
    order.push(name);
  };
  await Promise.all([work("a"), work("b")]);
  assert.equal(semaphore.isAwaited, false);
  const later = [work("c"), work("d")];
  assert.deepEqual(order, ["a", "b"]);
  assert.equal(semaphore.isAwaited, true);
  semaphore.release();
  await later[0];
  assert.deepEqual(order, ["a", "b", "c"]);
  semaphore.release();
  await later[1];
  assert.deepEqual(order, ["a", "b", "c", "d"]);
});

test("a caller that stops waiting takes no permit, and the next caller does not miss it", async () => {
  const semaphore = new Semaphore(1);
  await semaphore.acquire(never);
  const abort = new AbortController();
  const [givenUp, kept] = [semaphore.acquire(abort.signal), semaphore.acquire(never)];
  abort.abort();
  assert.equal(await givenUp, false);
  semaphore.release();
  assert.equal(await kept, true);
  assert.equal(await semaphore.acquire(AbortSignal.abort()), false);
});

test("a permit that arrives together with the abort goes to the next caller", async () => {
  const semaphore = new Semaphore(1);
  await semaphore.acquire(never);
  const abort = new AbortController();
  const [givenUp, kept] = [semaphore.acquire(abort.signal), semaphore.acquire(never)];
  semaphore.release();
  abort.abort();
  assert.equal(await givenUp, false);
  assert.equal(await kept, true);
});

test("at most as many are inside as there are permits, the others follow in the order in which they asked", async () => {
  const semaphore = new Semaphore(2);
  const inside: string[] = [];
  const enter = async (name: string) => {
    const leave = await semaphore.enter();
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

test("leaving twice lets no one else in", async () => {
  const semaphore = new Semaphore(1);
  const leave = await semaphore.enter();
  leave();
  leave();
  await semaphore.enter();
  let entered = false;
  semaphore.enter().then(() => {
    entered = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(entered, false);
});
