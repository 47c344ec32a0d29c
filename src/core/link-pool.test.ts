import assert from "node:assert/strict";
import { test } from "node:test";
import { IDLE_MS, LINKS_MAX, LinkPool } from "./link-pool.ts";

class FakeLink {
  isSpent = false;
  isDestroyed = false;

  async destroy(): Promise<void> {
    this.isDestroyed = true;
  }
}

/** A clock that only moves when the test moves it. */
function handClock() {
  const sleepers: { readonly untilMs: number; readonly wake: () => void }[] = [];
  let nowMs = 0;
  return {
    wallMs: () => nowMs,
    monotonicMs: () => nowMs,
    sleep: (ms: number, signal?: AbortSignal) =>
      new Promise<void>((resolve) => {
        sleepers.push({ untilMs: nowMs + ms, wake: resolve });
        signal?.addEventListener("abort", () => resolve(), { once: true });
      }),
    async pass(ms: number): Promise<void> {
      nowMs += ms;
      for (const { untilMs, wake } of sleepers) if (untilMs <= nowMs) wake();
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

const never = new AbortController().signal;

function newPool(clock = handClock()) {
  const created: FakeLink[] = [];
  const create = () => {
    created.push(new FakeLink());
    return created.at(-1)!;
  };
  return { pool: new LinkPool(create, clock), created, clock };
}

test("a link is used by one publish at a time and then again", async () => {
  const { pool, created } = newPool();
  const [first, second] = [await pool.take(never), await pool.take(never)];
  assert.notEqual(first, second);
  pool.giveBack(second!);
  assert.equal(await pool.take(never), second);
  assert.equal(created.length, 2);
  await pool.close();
});

test("a link that is spent is destroyed and replaced", async () => {
  const { pool, created } = newPool();
  const link = (await pool.take(never))!;
  link.isSpent = true;
  pool.giveBack(link);
  assert.notEqual(await pool.take(never), link);
  assert.deepEqual(
    created.map(({ isDestroyed }) => isDestroyed),
    [true, false],
  );
  await pool.close();
});

test("beyond the bound a publish waits for a link, or until it is aborted", async () => {
  const { pool, created } = newPool();
  const taken = await Promise.all(Array.from({ length: LINKS_MAX }, () => pool.take(never)));
  const abort = new AbortController();
  const [givenUp, waiting] = [pool.take(abort.signal), pool.take(never)];
  abort.abort();
  assert.equal(await givenUp, null);
  pool.giveBack(taken[3]!);
  assert.equal(await waiting, taken[3]);
  assert.equal(created.length, LINKS_MAX);
  await pool.close();
});

test("a link that is idle for too long is closed, a link in use stays open", async () => {
  const { pool, created, clock } = newPool();
  const [first, second] = [await pool.take(never), await pool.take(never)];
  pool.giveBack(first!);
  await clock.pass(IDLE_MS / 2);
  pool.giveBack(second!);
  await clock.pass(IDLE_MS / 2);
  assert.deepEqual(
    created.map(({ isDestroyed }) => isDestroyed),
    [true, false],
  );
  await clock.pass(IDLE_MS);
  assert.deepEqual(
    created.map(({ isDestroyed }) => isDestroyed),
    [true, true],
  );
  await pool.close();
});

test("close destroys idle links at once, and links in use when they are given back", async () => {
  const { pool, created } = newPool();
  const [first, second] = [await pool.take(never), await pool.take(never)];
  pool.giveBack(first!);
  await pool.close();
  pool.giveBack(second!);
  assert.deepEqual(
    created.map(({ isDestroyed }) => isDestroyed),
    [true, true],
  );
});
