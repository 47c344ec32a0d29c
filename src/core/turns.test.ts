import assert from "node:assert/strict";
import { test } from "node:test";
import { Turns } from "./turns.ts";

test("so many have a turn at a time, the others in the order in which they came", async () => {
  const turns = new Turns(2);
  const never = new AbortController().signal;
  const order: string[] = [];
  const work = async (name: string) => {
    assert.equal(await turns.take(never), true);
    order.push(name);
  };
  await Promise.all([work("a"), work("b")]);
  const later = [work("c"), work("d")];
  assert.deepEqual(order, ["a", "b"]);
  turns.giveBack();
  await later[0];
  assert.deepEqual(order, ["a", "b", "c"]);
  turns.giveBack();
  await later[1];
  assert.deepEqual(order, ["a", "b", "c", "d"]);
});

test("whoever gives up waiting takes no turn, and the next one does not miss it", async () => {
  const turns = new Turns(1);
  const never = new AbortController().signal;
  await turns.take(never);
  const impatient = new AbortController();
  const [given, kept] = [turns.take(impatient.signal), turns.take(never)];
  impatient.abort();
  assert.equal(await given, false);
  turns.giveBack();
  assert.equal(await kept, true);
  assert.equal(await turns.take(AbortSignal.abort()), false);
});
