import assert from "node:assert/strict";
import { test } from "node:test";
import { type Receiver, startReceiver } from "../../../test/servers/receiver.ts";
import type { Clock } from "../../core/clock.ts";
import type { Logger } from "../logs/logger.ts";
import { PushTally } from "../push-tally.ts";
import { type NoticeState, noticeOf } from "./webhook-notice.ts";
import { WebhookNotifier } from "./webhook-notifier.ts";

/** Sleeps take no real time but advance the clock. */
class HurriedClock implements Clock {
  nowMs = 1_700_000_000_000;
  wallMs = () => this.nowMs;
  monotonicMs = () => this.nowMs;
  sleep = async (ms: number) => {
    this.nowMs += ms;
  };
}

const OK: NoticeState = { grade: "ok", causes: [], deadLetters: 3 };

function notifier(receiver: Receiver) {
  const [clock, tally, warnings] = [new HurriedClock(), new PushTally(), [] as string[]];
  const state = { now: OK };
  const logger = { warn: (_: object, what: string) => void warnings.push(what) } as unknown as Logger;
  const it = new WebhookNotifier({
    ...{ url: receiver.url.replace("://", "://me:pass@"), token: null, everyMs: 60_000 },
    ...{ service: "shop", instance: "a/1", consoleUrl: "https://relay.example/", clock, tally, logger },
    look: async () => state.now,
  });
  return { it, clock, tally, warnings, state };
}

const bodies = ({ requests }: Receiver) => requests.map(({ body }) => JSON.parse(body.toString()) as Notified);

interface Notified {
  readonly type: string;
  readonly text: string;
  readonly deadLetters: { readonly new: number };
}

test("F3 a decline and new dead letters are notified once; the first check and improvements are not", () => {
  assert.equal(noticeOf(null, { ...OK, grade: "down" }).notice, null);
  const notified = { grade: "attention", deadLetters: 3 } as const;
  assert.equal(noticeOf(notified, { ...OK, grade: "ok", deadLetters: 1 }).notice, null);
  assert.equal(noticeOf(notified, { ...OK, grade: "attention", deadLetters: null }).notified.deadLetters, 3);
  const worse = noticeOf(notified, { grade: "degraded", causes: ["circuit-open crm"], deadLetters: 5 }).notice;
  assert.equal(worse?.text, "health attention → degraded (circuit-open crm); 2 new dead letters, 5 in all");
  assert.equal(noticeOf(notified, { ...OK, deadLetters: 4 }).notice?.type, "outbox-relay.dead-letters");
});

test("F3 a webhook is called with its login, and not more often than its interval: one call reports everything since the last", async () => {
  await using receiver = await startReceiver();
  const { clock, it, state } = notifier(receiver);
  await it.look();
  assert.equal(receiver.requests.length, 0);
  state.now = { ...OK, deadLetters: 4 };
  await it.look();
  state.now = { ...OK, deadLetters: 9 };
  await it.look();
  assert.equal(receiver.requests.length, 1, "the interval is not over");
  clock.nowMs += 60_000;
  state.now = { grade: "degraded", causes: ["circuit-open crm"], deadLetters: 10 };
  await it.look();
  await it.look();
  assert.deepEqual(
    bodies(receiver).map(({ deadLetters, type }) => [type, deadLetters.new]),
    [
      ["outbox-relay.dead-letters", 1],
      ["outbox-relay.health-worsened", 6],
    ],
  );
  const [{ body, headers } = assert.fail("nothing came")] = receiver.requests;
  assert.equal(headers.authorization, `Basic ${Buffer.from("me:pass").toString("base64")}`);
  assert.deepEqual(JSON.parse(body.toString()), {
    type: "outbox-relay.dead-letters",
    text: "shop: 1 new dead letter, 4 in all",
    ...{ health: { before: "ok", now: "ok" }, causes: [], deadLetters: { new: 1, total: 4 } },
    ...{ at: "2023-11-14T22:13:20.000Z", service: "shop", instance: "a/1", console: "https://relay.example/" },
  });
});

test("F3 an unreachable webhook gets what it missed when it is back; meanwhile failures are counted, logged and shown", async () => {
  await using receiver = await startReceiver();
  receiver.manner = 500;
  const { clock, it, state, tally, warnings } = notifier(receiver);
  await it.look();
  state.now = { ...OK, deadLetters: 4 };
  await it.look();
  assert.deepEqual(tally.figures(), [{ receiver: "webhook", failures: 5, dropped: 0 }]);
  assert.deepEqual(warnings, ["the webhook could not be notified; retrying"]);
  assert.equal(it.problem, "the webhook could not be notified: it answered 500", "without its response");
  receiver.manner = 400;
  clock.nowMs += 60_000;
  state.now = { ...OK, deadLetters: 5 };
  await it.look();
  assert.equal(receiver.requests.length, 6, "a refusal is not retried at once");
  receiver.manner = 200;
  clock.nowMs += 60_000;
  await it.look();
  assert.equal(it.problem, null);
  assert.equal(bodies(receiver).at(-1)?.deadLetters.new, 2, "all dead letters since the last notification");
});

test("F3 a webhook that is back after the recovery is notified once", async () => {
  await using receiver = await startReceiver();
  receiver.manner = 500;
  const { clock, it, state } = notifier(receiver);
  await it.look();
  state.now = { grade: "down", causes: ["database-unreachable"], deadLetters: 3 };
  await it.look();
  state.now = OK;
  receiver.manner = 200;
  clock.nowMs += 60_000;
  await it.look();
  clock.nowMs += 60_000;
  await it.look();
  assert.equal(it.problem, null);
  assert.deepEqual(
    bodies(receiver)
      .slice(5)
      .map(({ type }) => type),
    ["outbox-relay.notifications-resumed"],
  );
});
