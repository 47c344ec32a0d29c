import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { until } from "../../test/servers/until.ts";
import { systemClock, systemRandom } from "../core/clock.ts";
import type { RequestLease, RequestQueue } from "../ports/request-queue.ts";
import { memoryEventLog } from "../testing/memory-event-log.ts";
import type { RequestState } from "./request-listener.ts";
import { requestContext, streamOf } from "./request-names.ts";
import { RequestRelay } from "./request-relay.ts";

const context = requestContext("payment.payout");
const group = { ...context, queue: "payouts", jobName: "execute-request", markerMs: 60_000 };

/** A relay between a log in memory and a queue of which a test says what it answers. */
class Stage implements AsyncDisposable {
  readonly log = memoryEventLog();
  readonly turns: string[] = [];
  readonly copies = { reads: 0, writes: 0 };
  /** The position returned with the lease, and the one returned later. */
  stored: { leased: string | null; now: string | null } = { leased: null, now: null };
  isTaken = false;
  copied: string | null = null;
  readonly #stopped = new AbortController();
  #running: Promise<void> = Promise.resolve();

  start(): void {
    const queue: Partial<RequestQueue> = {
      acquire: async (): Promise<RequestLease | null> =>
        this.isTaken ? null : { token: "me:1", position: this.stored.leased },
      position: async () => this.stored.now,
      renew: async () => {},
      release: async () => {},
      dispatch: async (_group, _lease, { jobs }) => ({ isNew: jobs.map(() => true), deadCount: null }),
    };
    const turned = (_group: unknown, state: RequestState, why: { readonly code: string } | null) => {
      this.turns.push(why === null ? state : `${state} ${why.code}`);
    };
    const nothing = () => {};
    const relay = new RequestRelay({
      ...{ group, log: this.log, queue: queue as RequestQueue, filter: { suffixes: [] }, owner: "me" },
      ...{ start: "beginning", sinceMs: 0, leaseMs: 60, clock: systemClock, random: systemRandom },
      copy: {
        read: async () => {
          this.copies.reads += 1;
          return this.copied;
        },
        write: async () => {
          this.copies.writes += 1;
        },
      },
      listener: { dispatched: nothing, skipped: nothing, died: nothing, lag: nothing, turned },
    });
    this.#running = relay.run(this.#stopped.signal);
  }

  async turned(turn: string): Promise<void> {
    await until(`it turned ${turn}`, () => this.turns.includes(turn));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped.abort();
    await this.#running;
  }
}

test("E5 who stood by and gets a queue that knows nothing halts, since it knew something before", async () => {
  await using stage = new Stage();
  stage.isTaken = true;
  stage.stored = { leased: null, now: "5" };
  stage.start();
  await stage.turned("standby");
  stage.stored = { leased: null, now: null };
  stage.isTaken = false;
  await stage.turned("halted QUEUE_FORGOT");
  assert.ok(!stage.turns.includes("running"), stage.turns.join());
});

test("E5 who froze between the lease and the copy of the checkpoint is late, and does not take the queue for empty", async () => {
  await using stage = new Stage();
  stage.copied = "5";
  stage.stored = { leased: null, now: "5" };
  stage.start();
  await stage.turned("broken FENCED");
  stage.stored = { leased: null, now: null };
  await stage.turned("halted QUEUE_FORGOT");
  assert.deepEqual([...new Set(stage.turns)], ["starting", "broken FENCED", "halted QUEUE_FORGOT"]);
});

test("E5 the copy of the checkpoint is read at every turn, and written seldom however often the log has nothing more", async () => {
  await using stage = new Stage();
  const stream = streamOf(context, "core", "r-1");
  stage.stored = { leased: "beginning", now: "beginning" };
  stage.start();
  await stage.turned("running");
  for (let revision = -1n; revision < 30n; revision += 1n) {
    const event = { id: randomUUID(), type: "PayoutNoted.v1", data: { id: "r-1" }, metadata: { tenant: "core" } };
    await stage.log.append(stream, revision < 0n ? null : revision, [event]);
  }
  await until("it is written", () => stage.copies.writes > 0);
  assert.ok(stage.copies.writes <= 3, `written ${stage.copies.writes} times`);
  assert.equal(stage.copies.reads, 1);
});
